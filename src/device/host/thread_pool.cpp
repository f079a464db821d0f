#include "device/host/thread_pool.hpp"

#include <unistd.h>

#include <algorithm>
#include <system_error>

namespace sl {

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)) {}

ThreadPool::~ThreadPool() {
  if (started_ && owner_pid_ != getpid()) {  // in a forked child the workers do not exist: there is nothing to join
    for (std::thread& worker : workers_) worker.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  has_work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::start() {
  started_ = true;
  owner_pid_ = getpid();
  try {
    for (int i = 1; i < threads_; ++i) workers_.emplace_back([this] { serve(); });
  } catch (const std::system_error&) {  // fewer threads; callers do the work
  }
}

void ThreadPool::run(PoolJob& job) {
  if (threads_ > 1) {
    const std::lock_guard lock(mutex_);
    if (!started_) start();
    jobs_.push_back(&job);
  }
  has_work_.notify_all();
  job.participate();
  std::unique_lock lock(mutex_);
  std::erase(jobs_, &job);
  left_job_.wait(lock, [&] { return job.helpers_ == 0; });
}

void ThreadPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [&] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    PoolJob* const job =
        *std::min_element(jobs_.begin(), jobs_.end(), [](auto* a, auto* b) { return a->helpers_ < b->helpers_; });
    ++job->helpers_;
    lock.unlock();
    job->participate();
    lock.lock();
    std::erase(jobs_, job);  // nothing is left of it to take
    if (--job->helpers_ == 0) left_job_.notify_all();
  }
}

}  // namespace sl
