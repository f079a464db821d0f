// What a store does while nothing is wrong.
#include "store/file_store.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <set>
#include <thread>

#include "store/entry_format.hpp"
#include "store/fixture.hpp"

namespace sl::test {
namespace {

namespace fs = std::filesystem;

TEST_F(StoreTest, RoundTripsAnyBytes) {
  FileStore store = open();
  std::vector<StoreEntry> entries = {{"", "x"}, {"{}", std::string("\0\xff\n\r", 4)}, entry_of(1, 1 << 20)};
  for (std::size_t i = 0; i < entries.size(); ++i)
    ASSERT_TRUE(store.put(key_of(static_cast<int>(i)), entries[i]).ok()) << i;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto got = store.get(key_of(static_cast<int>(i)));
    ASSERT_TRUE(got.has_value()) << i;
    EXPECT_TRUE(same(*got, entries[i])) << i;
  }
  EXPECT_EQ(messages.count(), 0U) << messages.last();
  EXPECT_EQ(temporaries(), 0U);
}

TEST_F(StoreTest, AnotherStoreOnTheDirectoryHits) {
  ASSERT_TRUE(open().put(key_of(1), entry_of(1)).ok());
  const auto got = open().get(key_of(1));
  ASSERT_TRUE(got.has_value());
  EXPECT_TRUE(same(*got, entry_of(1)));
}

TEST_F(StoreTest, PutReplaces) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  ASSERT_TRUE(store.put(key_of(1), entry_of(2)).ok());
  EXPECT_TRUE(same(store.get(key_of(1)).value(), entry_of(2)));
  EXPECT_EQ(store.list().size(), 1U);
}

TEST_F(StoreTest, FilesArePrivateAndFannedOut) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  ASSERT_TRUE(fs::is_regular_file(file_of(key_of(1))));
  EXPECT_EQ(fs::status(base / "store").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(file_of(key_of(1)).parent_path()).permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(file_of(key_of(1))).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(StoreTest, NoDirectoryMeansNoStore) {
  FileStore store(StoreOptions{}, log);
  EXPECT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  EXPECT_FALSE(store.get(key_of(1)).has_value());
  EXPECT_TRUE(store.list().empty());
  EXPECT_EQ(store.prune(0).value(), 0U);
  EXPECT_EQ(store.clear().value(), 0U);
  ASSERT_FALSE(store.writable().ok());
  EXPECT_NE(store.writable().error().message.find("SLUICE_CACHE_DIR"), std::string::npos);
  EXPECT_EQ(messages.count(), 0U);
}

TEST_F(StoreTest, AnAbsentDirectoryIsASilentMissUntilThePut) {
  FileStore store = open_at("a/b/c");
  EXPECT_FALSE(store.get(key_of(1)).has_value());
  EXPECT_TRUE(store.list().empty());
  EXPECT_EQ(store.clear().value(), 0U);
  EXPECT_FALSE(fs::exists(base / "a")) << "reading must not create";
  EXPECT_EQ(messages.count(), 0U);
  EXPECT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  EXPECT_TRUE(store.get(key_of(1)).has_value());
}

TEST_F(StoreTest, ATrailingSlashIsTheSameDirectory) {
  ASSERT_TRUE(open_at("store/").put(key_of(1), entry_of(1)).ok());
  EXPECT_TRUE(open().get(key_of(1)).has_value());
}

TEST_F(StoreTest, WritableMakesTheDirectoryAndLeavesNoFile) {
  FileStore store = open();
  EXPECT_TRUE(store.writable().ok());
  EXPECT_TRUE(fs::is_directory(base / "store"));
  EXPECT_EQ(temporaries(), 0U);
  EXPECT_TRUE(store.list().empty());
}

TEST_F(StoreTest, EmptyPayloadIsRefused) {
  FileStore store = open();
  const Status status = store.put(key_of(1), {"{}", ""});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::invalid);
  EXPECT_FALSE(fs::exists(file_of(key_of(1))));
}

TEST_F(StoreTest, AnEntryLargerThanTheStoreIsRefused) {
  FileStore store = open(1000);
  const Status status = store.put(key_of(1), entry_of(1, 1000));
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("1000"), std::string::npos);
  EXPECT_TRUE(store.put(key_of(2), entry_of(2, 800)).ok());
}

TEST_F(StoreTest, ListTellsEverything) {
  FileStore store = open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(store.put(key_of(i), entry_of(i, 100)).ok());
  std::set<std::string> keys;
  for (const StoreListing& listing : store.list()) {
    EXPECT_TRUE(listing.valid) << listing.problem;
    EXPECT_EQ(listing.problem, "");
    EXPECT_EQ(listing.path, file_of(listing.key));
    EXPECT_EQ(listing.bytes, fs::file_size(listing.path));
    EXPECT_NE(listing.meta.find("number"), std::string::npos);
    const auto age = fs::file_time_type::clock::now() - listing.used;
    EXPECT_LT(age, std::chrono::hours(1));
    EXPECT_GT(age, -std::chrono::hours(1));
    keys.insert(listing.key.hex());
  }
  EXPECT_EQ(keys.size(), 5U);
}

TEST_F(StoreTest, GetRenewsTheUseStampAtMostOnceAnHour) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  const auto stamp = [&] { return fs::last_write_time(file_of(key_of(1))); };
  const auto now = fs::file_time_type::clock::now();
  const auto recent = now - std::chrono::minutes(30), old = now - std::chrono::hours(2);

  fs::last_write_time(file_of(key_of(1)), recent);
  ASSERT_TRUE(store.get(key_of(1)).has_value());
  EXPECT_LT(stamp(), now - std::chrono::minutes(29)) << "renewed although half an hour old";
  fs::last_write_time(file_of(key_of(1)), old);
  EXPECT_EQ(store.list().size(), 1U);
  EXPECT_LT(stamp(), now - std::chrono::hours(1)) << "listing is not use";
  ASSERT_TRUE(store.get(key_of(1)).has_value());
  EXPECT_GT(stamp(), now - std::chrono::minutes(1)) << "not renewed although two hours old";
}

TEST_F(StoreTest, SixteenThreads) {
  FileStore store = open();
  std::atomic<int> wrong{0}, failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 12; ++i) {
        const int shared = i % 4, own = 100 + t * 100 + i;
        for (const int number : {shared, own}) {
          if (!store.put(key_of(number), entry_of(number)).ok()) ++failed;
          const auto got = store.get(key_of(number));
          if (!got || !same(*got, entry_of(number))) ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store.list().size(), 4U + 16U * 12U);
  EXPECT_EQ(temporaries(), 0U);
}

TEST(EntryFileName, RoundTripsAndRefusesOthers) {
  for (int i = 0; i < 100; ++i) {
    Digest back;
    ASSERT_TRUE(parse_entry_file_name(entry_file_name(key_of(i)), back));
    EXPECT_EQ(back, key_of(i));
  }
  const std::string good = entry_file_name(key_of(0));
  Digest ignored;
  for (std::string name :
       {std::string(), good.substr(1), good + "x", std::string(32, 'g') + ".entry", std::string(32, 'A') + ".entry"})
    EXPECT_FALSE(parse_entry_file_name(name, ignored)) << name;
}

TEST(DefaultCacheRoot, Table) {
  struct Row {
    const char *sluice, *xdg, *home, *want;
  };
  const Row rows[] = {
      {"/a", "/b", "/c", "/a"},
      {nullptr, "/b", "/c", "/b/sluice"},
      {nullptr, nullptr, "/c", "/c/.cache/sluice"},
      {nullptr, nullptr, nullptr, ""},
      {"", "", "", ""},
      {"off", "/b", "/c", ""},
      {"rel/dir", "/b", "/c", "rel/dir"},
      {nullptr, "rel", "/c", "/c/.cache/sluice"},
      {nullptr, nullptr, "rel", ""},
  };
  for (const Row& row : rows) EXPECT_EQ(default_cache_root(row.sluice, row.xdg, row.home), row.want) << row.want;
}

}  // namespace
}  // namespace sl::test
