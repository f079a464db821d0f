// Several processes on one directory, and processes that die in the middle of a write.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <random>

#include "store/fixture.hpp"

namespace sl::test {
namespace {

class Processes : public StoreTest {
 protected:
  static pid_t spawn(const std::function<bool()>& body) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(body() ? 0 : 1);
    return child;
  }
  static bool succeeded(pid_t child) {
    int status = 0;
    return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
};

TEST_F(Processes, TwoPutAndGetSameAndOwnKeysAtOnce) {
  const auto work = [this](int who) {
    FileStore store = open();
    for (int i = 0; i < 100; ++i) {
      for (const int number : {i % 5, 1000 * who + i}) {
        if (!store.put(key_of(number), entry_of(number)).ok()) return false;
        const auto got = store.get(key_of(number));
        if (!got || !same(*got, entry_of(number))) return false;
      }
    }
    return messages.count() == 0;
  };
  const pid_t one = spawn([&] { return work(1); }), two = spawn([&] { return work(2); });
  EXPECT_TRUE(succeeded(one));
  EXPECT_TRUE(succeeded(two));
  std::size_t valid = 0;
  for (const StoreListing& listing : open().list()) valid += listing.valid;
  EXPECT_EQ(valid, 5U + 200U);
  EXPECT_EQ(temporaries(), 0U);
}

TEST_F(Processes, EightStartOnAnAbsentDirectory) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(spawn([this, i] {
      FileStore store = open_at("deep/below/store");
      return store.put(key_of(i), entry_of(i)).ok() && store.get(key_of(i)).has_value();
    }));
  for (const pid_t child : children) EXPECT_TRUE(succeeded(child));
}

TEST_F(Processes, PruningBesideReadersAndWriters) {
  // Small cap: the writers prune each other's entries all the time. A get is a miss or the right bytes.
  const auto work = [this](int who) {
    FileStore store = open(6000);
    for (int i = 0; i < 150; ++i) {
      const int number = (i * 7 + who * 3) % 40;
      if (!store.put(key_of(number), entry_of(number)).ok()) return false;
      const int other = (i * 5 + who) % 40;
      const auto got = store.get(key_of(other));
      if (got && !same(*got, entry_of(other))) return false;
    }
    return messages.count() == 0;
  };
  const pid_t one = spawn([&] { return work(1); }), two = spawn([&] { return work(2); });
  EXPECT_TRUE(succeeded(one)) << "process 1";
  EXPECT_TRUE(succeeded(two)) << "process 2";
  for (const StoreListing& listing : open().list()) EXPECT_TRUE(listing.valid) << listing.problem;
}

TEST_F(Processes, KilledWhileWriting) {
  constexpr unsigned seed = 20240611;
  RecordProperty("seed", static_cast<int>(seed));
  std::mt19937 random(seed);
  std::size_t hits = 0;
  for (int round = 0; round < 20; ++round) {
    int started[2];
    ASSERT_EQ(::pipe(started), 0);
    const pid_t child = spawn([this, &started] {
      FileStore store = open();
      for (int i = 0;; i = (i + 1) % 50) {
        (void)store.put(key_of(i), entry_of(i, 200000));
        if (i == 0) (void)!::write(started[1], "x", 1);
      }
      return true;
    });
    ASSERT_GE(child, 0);
    ::close(started[1]);
    char byte = 0;  // a slow machine must not make this a test of processes that never wrote
    ASSERT_EQ(::read(started[0], &byte, 1), 1);
    ::usleep(static_cast<useconds_t>(random() % 30000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "it ended before it was killed";
    ::close(started[0]);

    const FileStore store = open();
    for (int i = 0; i < 50; ++i) {
      const auto got = store.get(key_of(i));
      if (!got) continue;
      ++hits;
      ASSERT_TRUE(same(*got, entry_of(i, 200000))) << "round " << round << " seed " << seed;
    }
    for (const StoreListing& listing : store.list()) ASSERT_TRUE(listing.valid) << listing.problem;
  }
  EXPECT_GT(hits, 0U) << "the test itself: something was written";
  EXPECT_EQ(messages.count(), 0U) << messages.last();
  ASSERT_TRUE(open().clear().ok());
  EXPECT_EQ(temporaries(), 0U);
}

TEST_F(Processes, AStoreWorksAcrossFork) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  EXPECT_TRUE(
      succeeded(spawn([&] { return store.get(key_of(1)).has_value() && store.put(key_of(2), entry_of(2)).ok(); })));
  EXPECT_TRUE(store.get(key_of(2)).has_value());
}

}  // namespace
}  // namespace sl::test
