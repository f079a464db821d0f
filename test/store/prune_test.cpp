// The store stays bounded: least recently used first, never what changed since it was listed.
#include <sys/stat.h>

#include "store/directory.hpp"
#include "store/entry_format.hpp"
#include "store/fixture.hpp"

namespace sl::test {
namespace {

namespace fs = std::filesystem;

class Prune : public StoreTest {
 protected:
  static constexpr std::size_t payload = 1000;
  std::uint64_t entry_bytes(int i) const { return entry_header_bytes + entry_of(i, payload).meta.size() + payload; }
  void age(int i, int hours) {
    fs::last_write_time(file_of(key_of(i)), fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }
  std::uint64_t bytes_on_disk() {
    std::uint64_t sum = 0;
    for (const StoreListing& listing : open().list()) sum += listing.bytes;
    return sum;
  }
};

TEST_F(Prune, OldestStampsGoFirst) {
  FileStore store = open();
  const int hours[] = {3, 9, 1, 7, 5};
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store.put(key_of(i), entry_of(i, payload)).ok());
    age(i, hours[i]);
  }
  const auto freed = store.prune(2 * entry_bytes(0));
  ASSERT_TRUE(freed.ok());
  EXPECT_EQ(freed.value(), 3 * entry_bytes(0));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(store.get(key_of(i)).has_value(), hours[i] <= 3) << hours[i];
}

TEST_F(Prune, NothingGoesWhileItFits) {
  FileStore store = open();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store.put(key_of(i), entry_of(i, payload)).ok());
  EXPECT_EQ(store.prune(3 * entry_bytes(0)).value(), 0U);
  EXPECT_EQ(store.list().size(), 3U);
  EXPECT_EQ(store.prune(0).value(), 3 * entry_bytes(0));
  EXPECT_TRUE(store.list().empty());
}

TEST_F(Prune, PutKeepsTheCap) {
  const std::uint64_t cap = 10 * entry_bytes(10);
  FileStore store = open(cap);
  for (int i = 10; i < 60; ++i) {
    ASSERT_TRUE(store.put(key_of(i), entry_of(i, payload)).ok());
    ASSERT_TRUE(store.get(key_of(i)).has_value()) << "the entry just put stays";
    ASSERT_LE(bytes_on_disk(), cap) << i;
  }
  EXPECT_GE(bytes_on_disk(), cap / 2) << "it does not throw away more than it must";
}

TEST_F(Prune, PutSeesWhatOtherStoresWrote) {
  const std::uint64_t cap = 40 * entry_bytes(10);
  FileStore one = open(cap), two = open(cap);
  for (int i = 10; i < 99; ++i) ASSERT_TRUE((i % 2 == 0 ? one : two).put(key_of(i), entry_of(i, payload)).ok());
  EXPECT_LE(bytes_on_disk(), cap + 2 * (cap / 8)) << "each store rescans after an eighth of the cap";
}

TEST_F(Prune, TheEntryJustPutStaysEvenAlone) {
  FileStore store = open(entry_bytes(0) + 10);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(store.put(key_of(i), entry_of(i, payload)).ok());
    EXPECT_TRUE(store.get(key_of(i)).has_value());
  }
  EXPECT_EQ(store.list().size(), 1U);
}

TEST_F(Prune, UseProtects) {
  FileStore store = open();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(store.put(key_of(i), entry_of(i, payload)).ok());
    age(i, 10 - i);
  }
  ASSERT_TRUE(store.get(key_of(0)).has_value());  // the oldest becomes the newest
  ASSERT_TRUE(store.prune(entry_bytes(0)).ok());
  EXPECT_TRUE(store.get(key_of(0)).has_value());
  EXPECT_EQ(store.list().size(), 1U);
}

TEST_F(Prune, WhatChangedSinceItWasListedStays) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(0), entry_of(0)).ok());
  const std::string name = file_of(key_of(0)).filename();
  const Directory folder = open_directory(file_of(key_of(0)).parent_path(), Create::no);
  const auto listed = [&] {
    struct stat info {};
    EXPECT_EQ(::stat(file_of(key_of(0)).c_str(), &info), 0);
    return info;
  };
  struct stat before = listed();
  ASSERT_TRUE(store.put(key_of(0), entry_of(0)).ok());
  EXPECT_FALSE(unlink_unchanged(folder, name, before)) << "replaced by equal bytes";
  age(0, 2);
  before = listed();
  ASSERT_TRUE(store.get(key_of(0)).has_value());
  EXPECT_FALSE(unlink_unchanged(folder, name, before)) << "used";
  EXPECT_TRUE(store.get(key_of(0)).has_value());
  EXPECT_TRUE(unlink_unchanged(folder, name, listed()));
  EXPECT_FALSE(unlink_unchanged(folder, name, before)) << "gone already";
}

TEST_F(Prune, LeftTemporariesGoAfterAnHour) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(0), entry_of(0)).ok());
  const fs::path fresh = base / "store" / "tmp" / "1-a", old = base / "store" / "tmp" / "1-b";
  spill(fresh, "abc");
  spill(old, "abcde");
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_EQ(store.prune(1ULL << 30).value(), 5U);
  EXPECT_TRUE(fs::exists(fresh)) << "somebody may be writing it";
  EXPECT_FALSE(fs::exists(old));
  EXPECT_EQ(store.list().size(), 1U);
  EXPECT_EQ(store.clear().value(), 3U + entry_header_bytes + entry_of(0).meta.size() + 300U);
  EXPECT_FALSE(fs::exists(fresh));
}

TEST_F(Prune, AnAbsentStoreIsEmpty) {
  EXPECT_EQ(open().prune(0).value(), 0U);
  EXPECT_EQ(open().clear().value(), 0U);
  EXPECT_FALSE(fs::exists(base / "store"));
}

}  // namespace
}  // namespace sl::test
