// Worker threads that help whoever has blocks to run. A caller always works on its own job too, so it never waits for a
// worker to become free, and a pool of one needs no thread.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace sl {

/// Work that any number of threads share. participate() returns when nothing is left to take; it does not throw.
class PoolJob {
 public:
  virtual ~PoolJob() = default;
  virtual void participate() noexcept = 0;

 private:
  friend class ThreadPool;
  int helpers_ = 0;  // under the pool's mutex
};

class ThreadPool {
 public:
  /// `threads` work on a job at most, its caller included. Threads start with the first job.
  explicit ThreadPool(int threads);
  ~ThreadPool();

  /// Runs a job to its end; returns when no worker is in it any more. From any thread.
  void run(PoolJob&);
  int threads() const { return threads_; }

 private:
  void start();
  void serve();

  const int threads_;
  std::mutex mutex_;
  std::condition_variable has_work_, left_job_;
  std::vector<PoolJob*> jobs_;
  std::vector<std::thread> workers_;
  bool started_ = false, stop_ = false;
  int owner_pid_ = 0;
};

}  // namespace sl
