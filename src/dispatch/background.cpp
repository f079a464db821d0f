#include "dispatch/background.hpp"

#include <utility>

namespace sl {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Background::Watch Background::watch(const Triage& triage, const Target& target) {
  const std::lock_guard lock(mutex_);
  // The winner is final before its job leaves the map, and both are looked at under this lock: nobody falls in between.
  if (const auto it = jobs_.find(triage.key); it != jobs_.end()) {
    if (it->second.targets.size() >= max_targets) return Watch::full;
    it->second.targets.push_back(target);
    return Watch::watching;
  }
  if (hooks_.settled(triage.key)) return Watch::settled;
  if (jobs_.size() >= max_jobs) return Watch::full;
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  jobs_.emplace(triage.key, Job{std::make_shared<const Triage>(triage), {target}});
  queue_.push_back(triage.key);
  wake_.notify_one();
  return Watch::watching;
}

void Background::wait_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return (queue_.empty() && !busy_) || stop_; });
}

void Background::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const Digest key = queue_.front();
    queue_.pop_front();
    busy_ = true;
    const std::shared_ptr<const Triage> triage = jobs_.at(key).triage;  // no copy: nothing here may run out of memory
    lock.unlock();
    hooks_.tune(*triage);
    lock.lock();
    const std::vector<Target> targets = std::move(jobs_.at(key).targets);
    jobs_.erase(key);
    lock.unlock();
    hooks_.publish(*triage, targets);
    lock.lock();
    busy_ = false;
    if (queue_.empty()) idle_.notify_all();
  }
}

}  // namespace sl
