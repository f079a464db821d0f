// A damaged, foreign, older or newer file is a miss with one warning: never a crash, never other bytes.
#include <sys/stat.h>
#include <unistd.h>

#include "store/entry_format.hpp"
#include "store/fixture.hpp"

namespace sl::test {
namespace {

namespace fs = std::filesystem;

class Corruption : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    ASSERT_TRUE(open().put(key, entry_of(1, 500)).ok());
    image = slurp(file_of(key));
    ASSERT_EQ(image, encode_entry(1, key, entry_of(1, 500)));
  }
  /// A fresh store and log on the file as it is now: a miss, one warning that holds `word`, and list() says so.
  void expect_miss(const std::string& word) {
    Messages said;
    const Log fresh{said.sink()};
    const FileStore store(StoreOptions{base / "store", 1, 1ULL << 30}, fresh);
    EXPECT_FALSE(store.get(key).has_value());
    EXPECT_FALSE(store.get(key).has_value());
    EXPECT_EQ(said.count(), 1U);
    EXPECT_NE(said.last().find(word), std::string::npos) << said.last();
    const auto listed = store.list();
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_FALSE(listed[0].valid);
    EXPECT_NE(listed[0].problem.find(word), std::string::npos) << listed[0].problem;
  }

  const Digest key = key_of(1);
  std::string image;
};

TEST_F(Corruption, EverySingleBitOfTheHeaderAndSamplesOfTheBody) {
  FileStore store = open();
  for (std::size_t byte = 0; byte < image.size(); byte += byte < entry_header_bytes + 16 ? 1 : 13) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = image;
      bad[byte] = static_cast<char>(bad[byte] ^ (1 << bit));
      spill(file_of(key), bad);
      ASSERT_FALSE(store.get(key).has_value()) << "byte " << byte << " bit " << bit;
    }
    for (const char value : {'\0', '\xff'}) {
      std::string bad = image;
      if (bad[byte] == value) continue;
      bad[byte] = value;
      spill(file_of(key), bad);
      ASSERT_FALSE(store.get(key).has_value()) << "byte " << byte;
    }
  }
  spill(file_of(key), image);
  EXPECT_TRUE(store.get(key).has_value()) << "the test itself: the undamaged file hits";
}

TEST_F(Corruption, TruncationAtEveryLengthAndGrowth) {
  FileStore store = open();
  for (std::size_t length = 0; length < image.size(); ++length) {
    spill(file_of(key), image.substr(0, length));
    ASSERT_FALSE(store.get(key).has_value()) << length;
  }
  for (const std::size_t more : {1U, 64U, 4096U}) {
    spill(file_of(key), image + std::string(more, 'x'));
    ASSERT_FALSE(store.get(key).has_value()) << more;
  }
}

TEST_F(Corruption, ZeroLength) {
  spill(file_of(key), "");
  expect_miss("less than a header");
}

TEST_F(Corruption, WrongMagic) {
  image[3] = 'X';
  spill(file_of(key), image);
  expect_miss("magic");
}

TEST_F(Corruption, NewerAndOlderVersion) {
  for (const char version : {'\0', '\2'}) {
    image[8] = version;
    spill(file_of(key), image);
    expect_miss("version " + std::to_string(version));
  }
}

TEST_F(Corruption, AnotherKind) {
  spill(file_of(key), encode_entry(2, key, entry_of(1)));
  expect_miss("kind 2");
}

TEST_F(Corruption, AnotherKey) {
  spill(file_of(key), encode_entry(1, key_of(2), entry_of(1)));
  expect_miss(key_of(2).hex());
}

TEST_F(Corruption, ValidHeaderWithAnEmptyPayload) {
  spill(file_of(key), encode_entry(1, key, {"{}", ""}));
  expect_miss("empty");
}

TEST_F(Corruption, SizesThatWouldOverflowOrExhaustMemory) {
  for (const std::uint64_t size : {~0ULL, 1ULL << 63, (1ULL << 40), ~0ULL - 563}) {
    for (const std::size_t at : {32U, 40U}) {
      std::string bad = image;
      for (std::size_t i = 0; i < 8; ++i) bad[at + i] = static_cast<char>(size >> (8 * i));
      spill(file_of(key), bad);
      expect_miss("header says");
    }
  }
  // A sparse file whose true size agrees with its header is still not believed.
  std::string huge = image;
  const std::uint64_t claimed = 1ULL << 40;
  for (std::size_t i = 0; i < 8; ++i) {
    huge[32 + i] = 0;
    huge[40 + i] = static_cast<char>(claimed >> (8 * i));
  }
  spill(file_of(key), huge);
  if (::truncate(file_of(key).c_str(), static_cast<off_t>(claimed + entry_header_bytes)) == 0)
    expect_miss("header says");
}

TEST_F(Corruption, NotARegularFile) {
  fs::remove(file_of(key));
  fs::create_directory(file_of(key));
  expect_miss("not a regular file");
  fs::remove(file_of(key));
  ASSERT_EQ(::mkfifo(file_of(key).c_str(), 0600), 0);
  expect_miss("not a regular file");  // and does not hang
}

TEST_F(Corruption, ASymbolicLinkIsNotFollowed) {
  spill(base / "elsewhere", image);
  fs::remove(file_of(key));
  fs::create_symlink(base / "elsewhere", file_of(key));
  expect_miss("cannot be read");
}

TEST_F(Corruption, AFileOthersMayWrite) {
  ASSERT_EQ(::chmod(file_of(key).c_str(), 0666), 0);
  expect_miss("others may write");
}

TEST_F(Corruption, AFileOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a file away";
  ASSERT_EQ(::chown(file_of(key).c_str(), 12345, 12345), 0);
  expect_miss("12345");
}

TEST_F(Corruption, APutHeals) {
  spill(file_of(key), "");
  FileStore store = open();
  EXPECT_FALSE(store.get(key).has_value());
  ASSERT_TRUE(store.put(key, entry_of(1)).ok());
  EXPECT_TRUE(store.get(key).has_value());
}

TEST_F(Corruption, ManyDamagedFilesWarnOnce) {
  FileStore store = open();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store.put(key_of(i), entry_of(i)).ok());
    spill(file_of(key_of(i)), "");
  }
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(store.get(key_of(i)).has_value());
  EXPECT_EQ(messages.count(), 1U);
}

TEST_F(Corruption, StrangersInTheDirectoryAreListedNotTouched) {
  FileStore store = open();
  spill(file_of(key).parent_path() / "notes.txt", "mine");
  spill(base / "store" / "README", "mine");
  std::size_t strangers = 0;
  for (const StoreListing& listing : store.list()) strangers += listing.problem.find("not named") != std::string::npos;
  EXPECT_EQ(strangers, 1U);
  ASSERT_TRUE(store.clear().ok());
  EXPECT_FALSE(fs::exists(file_of(key)));
  EXPECT_EQ(slurp(file_of(key).parent_path() / "notes.txt"), "mine");
  EXPECT_EQ(slurp(base / "store" / "README"), "mine");
}

TEST_F(Corruption, AnEntryInTheWrongFolderIsListedAsLost) {
  const fs::path wrong = base / "store" / (key.hex()[0] == '0' ? "ff" : "00");
  fs::create_directory(wrong);
  fs::permissions(wrong, fs::perms::owner_all);
  spill(wrong / file_of(key).filename(), image);
  std::size_t lost = 0;
  for (const StoreListing& listing : open().list()) lost += listing.problem.find("belongs into") != std::string::npos;
  EXPECT_EQ(lost, 1U);
}

}  // namespace
}  // namespace sl::test
