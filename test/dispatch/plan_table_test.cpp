#include "dispatch/plan_table.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <thread>
#include <vector>

namespace sl {
namespace {

PlanTable::Key key_of(std::int64_t value) {
  PlanTable::Key key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = value * static_cast<std::int64_t>(i + 1);
  return key;
}

const Kernel* kernel_of(std::int64_t value) { return reinterpret_cast<const Kernel*>(value * 64); }

/// Every word follows from (key, version), so a reader can tell a torn entry.
PlanEntry entry_of(std::int64_t key, std::int64_t version) {
  PlanEntry entry;
  entry.kind = PlanEntry::Kind::plan;
  entry.kernel = kernel_of(key * 1000 + version);
  entry.geometry = {key + version, static_cast<int>(version), static_cast<int>(key)};
  entry.params.n = key;
  entry.params.work = version;
  for (long long& word : entry.params.aux) word = key ^ version;
  for (SlFastDiv& div : entry.params.div) div.mul = static_cast<unsigned>(version);
  return entry;
}

bool consistent(const PlanEntry& entry, std::int64_t key) {
  const std::int64_t version = entry.params.work;
  const PlanEntry expected = entry_of(key, version);
  bool same = entry.kind == expected.kind && entry.kernel == expected.kernel && entry.params.n == key &&
              entry.geometry.grid == expected.geometry.grid && entry.geometry.block == expected.geometry.block &&
              entry.geometry.dynamic_smem == expected.geometry.dynamic_smem;
  for (std::size_t i = 0; i < 8; ++i) same = same && entry.params.aux[i] == expected.params.aux[i];
  for (std::size_t i = 0; i < 6; ++i) same = same && entry.params.div[i].mul == expected.params.div[i].mul;
  return same;
}

RC_GTEST_PROP(PlanTable, FindsTheLatestThatWasPublishedOrNothing, ()) {
  PlanTable table(16);
  std::map<std::int64_t, std::int64_t> model;  // key -> version
  const auto steps = *rc::gen::container<std::vector<std::pair<std::int64_t, bool>>>(
      rc::gen::pair(rc::gen::inRange<std::int64_t>(0, 40), rc::gen::arbitrary<bool>()));
  std::int64_t version = 0;
  for (const auto& [key, publish] : steps) {
    if (publish) {
      const bool known = [&] {
        PlanEntry old;
        return table.find(key_of(key), old);
      }();
      RC_ASSERT(table.publish(key_of(key), entry_of(key, ++version)) == !known);
      model[key] = version;
    }
    PlanEntry found;
    const bool hit = table.find(key_of(key), found);
    if (publish) RC_ASSERT(hit);  // nobody has published since
    if (hit) {
      RC_ASSERT(model.contains(key));
      RC_ASSERT(found.params.work == model[key]);
      RC_ASSERT(consistent(found, key));
    }
  }
}

TEST(PlanTable, HoldsACapacityOfDistinctKeysWithFewLosses) {
  PlanTable table(4096);
  const std::int64_t count = 2048;
  for (std::int64_t key = 0; key < count; ++key) table.publish(key_of(key), entry_of(key, 1));
  std::int64_t found = 0;
  for (std::int64_t key = 0; key < count; ++key) {
    PlanEntry entry;
    found += table.find(key_of(key), entry) ? 1 : 0;
  }
  EXPECT_GT(found, count * 95 / 100) << "keys spread badly over the neighbourhoods";
}

TEST(PlanTable, AFullNeighbourhoodReplacesItsOldest) {
  PlanTable table(1);
  ASSERT_EQ(table.capacity(), PlanTable::ways);
  const auto ways = static_cast<std::int64_t>(PlanTable::ways);
  for (std::int64_t key = 0; key < ways; ++key) table.publish(key_of(key), entry_of(key, 1));
  table.publish(key_of(0), entry_of(0, 2));  // 0 is now the youngest, 1 the oldest
  table.publish(key_of(100), entry_of(100, 1));
  for (std::int64_t key = 0; key < ways; ++key) {
    PlanEntry entry;
    EXPECT_EQ(table.find(key_of(key), entry), key != 1) << key;
  }
}

TEST(PlanTable, NeverGrows) {
  PlanTable table(64);
  const std::size_t before = table.bytes();
  EXPECT_EQ(table.capacity(), 64u);
  for (std::int64_t key = 0; key < 10000; ++key) table.publish(key_of(key), entry_of(key, key));
  EXPECT_EQ(table.bytes(), before);
}

TEST(PlanTable, KeptReplacesNothingCounted) {
  PlanTable table;
  PlanEntry kept;
  kept.kind = PlanEntry::Kind::kept;
  EXPECT_TRUE(table.publish(key_of(1), kept));
  EXPECT_TRUE(table.publish(key_of(1), entry_of(1, 1))) << "a kept entry is no plan";
  EXPECT_FALSE(table.publish(key_of(1), kept));
  PlanEntry entry;
  ASSERT_TRUE(table.find(key_of(1), entry));
  EXPECT_EQ(entry.kind, PlanEntry::Kind::kept);
}

TEST(PlanTable, AWrongKeyNeverHits) {
  PlanTable table;
  table.publish(key_of(7), entry_of(7, 1));
  for (std::size_t word = 0; word < PlanTable::key_words; ++word) {
    PlanTable::Key other = key_of(7);
    other[word] ^= 1;
    PlanEntry entry;
    EXPECT_FALSE(table.find(other, entry)) << word;
  }
}

// Few slots and many keys, so that replacement happens all the time under the readers.
TEST(PlanTable, ReadersSeeWholeEntriesOnly) {
  PlanTable table(16);
  constexpr std::int64_t keys = 24;
  constexpr int writes = 6000, reads = 12000;
  std::atomic<std::int64_t> torn{0}, hits{0};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 2; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < writes; ++i) {
        const std::int64_t key = (i * 7 + writer) % keys;
        table.publish(key_of(key), entry_of(key, 1 + i * 2 + writer));
        if (i % 64 == 0) std::this_thread::yield();  // on one core readers would meet no writer at all
      }
    });
  }
  for (int reader = 0; reader < 8; ++reader) {
    threads.emplace_back([&, reader] {
      for (int i = 0; i < reads; ++i) {
        const std::int64_t key = (i + reader * 3) % keys;
        PlanEntry entry;
        if (!table.find(key_of(key), entry)) continue;
        ++hits;
        if (!consistent(entry, key)) ++torn;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(hits, 0);
}

}  // namespace
}  // namespace sl
