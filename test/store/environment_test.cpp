// Read-only, full, absent, foreign and failing directories: running uncached with one warning.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "store/faults.hpp"
#include "store/fixture.hpp"

namespace sl::test {
namespace {

namespace fs = std::filesystem;

class Environment : public StoreTest {
 protected:
  /// Nothing can be written or read, it warns once, and it never throws.
  void expect_uncached(FileStore& store, const std::string& word) {
    for (int i = 0; i < 3; ++i) {
      const Status status = store.put(key_of(i), entry_of(i));
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.error().code, Code::environment);
      EXPECT_NE(status.error().message.find(word), std::string::npos) << status.error().message;
      EXPECT_FALSE(store.get(key_of(i)).has_value());
    }
    EXPECT_FALSE(store.writable().ok());
    EXPECT_EQ(messages.count(), 1U) << messages.last();
    EXPECT_NE(messages.last().find(word), std::string::npos) << messages.last();
  }
};

TEST_F(Environment, BeneathARegularFile) {
  spill(base / "file", "x");
  FileStore store = open_at("file/store");
  expect_uncached(store, "Not a directory");
}

TEST_F(Environment, ARegularFileItself) {
  spill(base / "store", "x");
  FileStore store = open();
  expect_uncached(store, "Not a directory");
}

TEST_F(Environment, WhereNothingCanBeCreated) {
  FileStore store(StoreOptions{"/proc/sluice/store", 1, 1 << 20}, log);
  expect_uncached(store, "/proc/sluice");
}

TEST_F(Environment, ReadOnlyDirectory) {
  ASSERT_TRUE(open().put(key_of(9), entry_of(9)).ok());
  if (::geteuid() == 0) {
    // Root may write anywhere: the fault stands for a read-only mount. Creating is refused, reading still hits.
    FileStore store = open();
    const Fault mount("mkdirat", EROFS);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(store.put(key_of(i), entry_of(i)).ok());
    EXPECT_TRUE(store.get(key_of(9)).has_value());
    EXPECT_EQ(messages.count(), 1U);
    return;
  }
  fs::permissions(base / "store", fs::perms::owner_read | fs::perms::owner_exec);
  FileStore store = open();
  expect_uncached(store, "Permission denied");
  EXPECT_TRUE(store.get(key_of(9)).has_value());
  fs::permissions(base / "store", fs::perms::owner_all);
}

TEST_F(Environment, SymbolicLink) {
  fs::create_directory(base / "real");
  fs::permissions(base / "real", fs::perms::owner_all);
  fs::create_directory_symlink(base / "real", base / "store");
  FileStore store = open();
  expect_uncached(store, "symbolic link");
  FileStore slash = open_at("store/");
  EXPECT_FALSE(slash.put(key_of(1), entry_of(1)).ok()) << "a trailing slash must not make it follow";
  EXPECT_TRUE(fs::is_empty(base / "real"));
}

TEST_F(Environment, FanOutFolderThatIsASymbolicLink) {
  ASSERT_TRUE(open().put(key_of(1), entry_of(1)).ok());
  const fs::path folder = file_of(key_of(1)).parent_path();
  fs::rename(folder, base / "moved");
  fs::create_directory_symlink(base / "moved", folder);
  EXPECT_FALSE(open().get(key_of(1)).has_value());
  EXPECT_FALSE(open().put(key_of(1), entry_of(1)).ok());
}

TEST_F(Environment, DirectoryOthersMayWriteTo) {
  for (const mode_t mode : {0777U, 0770U, 01777U, 0702U}) {
    fs::create_directory(base / "store");
    ASSERT_EQ(::chmod((base / "store").c_str(), mode), 0);
    Messages said;
    const Log fresh{said.sink()};
    FileStore store(StoreOptions{base / "store", 1, 1 << 20}, fresh);
    EXPECT_FALSE(store.put(key_of(1), entry_of(1)).ok());
    EXPECT_FALSE(store.get(key_of(1)).has_value());
    EXPECT_EQ(said.count(), 1U);
    EXPECT_NE(said.last().find("others may write"), std::string::npos) << said.last();
    EXPECT_FALSE(store.clear().ok());
    EXPECT_FALSE(store.prune(0).ok());
    EXPECT_TRUE(store.list().empty());
    EXPECT_TRUE(fs::is_empty(base / "store"));
    fs::remove(base / "store");
  }
}

TEST_F(Environment, DirectoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  ASSERT_TRUE(open().put(key_of(1), entry_of(1)).ok());
  ASSERT_EQ(::chown((base / "store").c_str(), 12345, 12345), 0);
  FileStore store = open();
  expect_uncached(store, "owned by user 12345");
}

TEST_F(Environment, FullDisk) {
  // RLIMIT_FSIZE makes write fail as a full disk does: after some bytes, with an error.
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    FileStore store = open();
    const bool small = store.put(key_of(1), entry_of(1, 200)).ok();
    const bool large = store.put(key_of(2), entry_of(2, 5000)).ok() || store.put(key_of(3), entry_of(3, 5000)).ok();
    const bool still = store.get(key_of(1)).has_value() && !store.get(key_of(2)).has_value();
    ::_exit(small && !large && still && messages.count() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(temporaries(), 0U) << "what could not be finished was not left behind";
  for (const StoreListing& listing : open().list()) EXPECT_TRUE(listing.valid) << listing.problem;
}

TEST_F(Environment, EveryFailingCallIsAnUncachedPut) {
  struct Row {
    const char* call;
    int error;
  };
  const Row rows[] = {{"write", ENOSPC},    {"write", EDQUOT},        {"write", EIO},     {"fsync", EIO},
                      {"renameat", ENOSPC}, {"renameat", EROFS},      {"openat", EMFILE}, {"openat", EACCES},
                      {"mkdirat", EROFS},   {"mkdirat", ENAMETOOLONG}};
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.call) + " " + std::to_string(row.error));
    Messages said;
    const Log fresh{said.sink()};
    FileStore store(StoreOptions{base / "fresh", 1, 1 << 20}, fresh);
    {
      const Fault fault(row.call, row.error);
      EXPECT_FALSE(store.put(key_of(1), entry_of(1)).ok());
      EXPECT_FALSE(store.put(key_of(1), entry_of(1)).ok());
      EXPECT_GT(fault.hits(), 0);
    }
    EXPECT_EQ(said.count(), 1U) << said.last();
    EXPECT_FALSE(store.get(key_of(1)).has_value());
    EXPECT_TRUE(store.put(key_of(1), entry_of(1)).ok()) << "the store recovers";
    EXPECT_TRUE(store.get(key_of(1)).has_value());
    fs::remove_all(base / "fresh");
  }
}

TEST_F(Environment, InterruptedAndShortCallsGoOn) {
  FileStore store = open();
  {
    const Fault fault("write", EINTR, 3);
    EXPECT_TRUE(store.put(key_of(1), entry_of(1)).ok());
    EXPECT_EQ(fault.hits(), 3);
  }
  {
    const Fault fault("write", 0, 200);  // 200 writes of one byte, then the rest
    EXPECT_TRUE(store.put(key_of(2), entry_of(2)).ok());
    EXPECT_EQ(fault.hits(), 200);
  }
  {
    const Fault fault("fsync", EINTR, 2);
    EXPECT_TRUE(store.put(key_of(3), entry_of(3)).ok());
  }
  for (int i = 1; i <= 3; ++i) {
    const Fault fault("read", EINTR, 2);
    ASSERT_TRUE(store.get(key_of(i)).has_value()) << i;
  }
  const Fault fault("openat", EINTR, 5);
  EXPECT_TRUE(same(store.get(key_of(2)).value(), entry_of(2)));
  EXPECT_EQ(messages.count(), 0U);
}

TEST_F(Environment, EntriesAreSyncedBeforeTheyArePublished) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());  // makes the directories
  const int before = calls_of("fsync");
  {
    const Fault fault("renameat", EIO);
    EXPECT_FALSE(store.put(key_of(1), entry_of(2)).ok());
    EXPECT_EQ(calls_of("fsync"), before + 1) << "the file is synced before the rename";
  }
  ASSERT_TRUE(store.put(key_of(1), entry_of(3)).ok());
  EXPECT_EQ(calls_of("fsync"), before + 3) << "file, then directory";
}

TEST_F(Environment, WhatFailsAfterPublishingIsNoFailure) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  const Fault fault("fsync", EIO, 1, 1);  // the directory's
  EXPECT_TRUE(store.put(key_of(1), entry_of(2)).ok());
  EXPECT_EQ(fault.hits(), 1);
  EXPECT_TRUE(same(store.get(key_of(1)).value(), entry_of(2)));
}

TEST_F(Environment, CleanupFailureIsNotReported) {
  FileStore store = open();
  ASSERT_TRUE(store.writable().ok());
  const Fault fault("unlinkat", EBUSY);
  EXPECT_TRUE(store.writable().ok());
  EXPECT_EQ(fault.hits(), 1);
  EXPECT_EQ(messages.count(), 0U);
}

TEST_F(Environment, StaleHandleIsRetriedOnce) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  for (int skip = 0; skip < 3; ++skip) {  // the store's directory, the folder, the file
    const Fault fault("openat", ESTALE, 1, skip);
    EXPECT_TRUE(store.get(key_of(1)).has_value()) << skip;
    EXPECT_EQ(fault.hits(), 1);
  }
  {
    const Fault fault("read", ESTALE, 1);
    EXPECT_TRUE(store.get(key_of(1)).has_value());
  }
  {
    const Fault fault("read", ESTALE);
    EXPECT_FALSE(store.get(key_of(1)).has_value());
    EXPECT_EQ(fault.hits(), 2);
  }
  {
    const Fault fault("renameat", ESTALE, 1);
    EXPECT_TRUE(store.put(key_of(2), entry_of(2)).ok());
  }
  EXPECT_EQ(messages.count(), 0U);
}

TEST_F(Environment, DirectoryRemovedUnderALivingStore) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  fs::remove_all(base / "store");
  EXPECT_FALSE(store.get(key_of(1)).has_value());
  EXPECT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  EXPECT_TRUE(store.get(key_of(1)).has_value());
  EXPECT_EQ(messages.count(), 0U);
}

TEST_F(Environment, NamesOfTemporariesThatAreTakenAreTriedAgain) {
  FileStore store = open();
  ASSERT_TRUE(store.put(key_of(1), entry_of(1)).ok());
  const Fault fault("openat", EEXIST, 3, 3);  // after the three directories
  EXPECT_TRUE(store.put(key_of(1), entry_of(2)).ok());
  EXPECT_EQ(fault.hits(), 3);
}

TEST_F(Environment, WithoutRandomBytesNamesStillDiffer) {
  FileStore store = open();
  const Fault fault("getrandom", EAGAIN);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(store.put(key_of(i), entry_of(i)).ok());
  EXPECT_GT(fault.hits(), 0);
}

}  // namespace
}  // namespace sl::test
