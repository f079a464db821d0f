// What BinaryCache holds in memory: finished binaries, bounded in bytes, and the flights that are under way.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>

#include "core/digest.hpp"
#include "device/device.hpp"

namespace sl {

using BinaryResult = Result<std::shared_ptr<const Binary>>;

/// One key being fetched or compiled by its owner; everyone else waits for it.
class BinaryFlight {
 public:
  void finish(BinaryResult result) {
    const std::scoped_lock lock(mutex_);
    result_ = std::move(result);
    done_.notify_all();
  }
  BinaryResult wait() {
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return result_.has_value(); });
    return *result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable done_;
  std::optional<BinaryResult> result_;
};

/// Thread-safe. Oldest binaries are dropped beyond `max_bytes`: whoever uses one holds it, and the store has it still.
class BinaryMemory {
 public:
  explicit BinaryMemory(std::size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Either a finished binary, or the key's flight; `owner` where this caller must finish that flight.
  struct Claim {
    std::shared_ptr<const Binary> ready;
    std::shared_ptr<BinaryFlight> flight;
    bool owner = false;
  };
  Claim claim(const Digest& key) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = ready_.find(key); found != ready_.end()) return {found->second, nullptr, false};
    auto& flight = flights_[key];
    const bool owner = flight == nullptr;
    if (owner) flight = std::make_shared<BinaryFlight>();
    return {nullptr, flight, owner};
  }

  /// Whether the owner has yet to finish its flight.
  bool open(const Digest& key, const std::shared_ptr<BinaryFlight>& flight) {
    const std::scoped_lock lock(mutex_);
    const auto found = flights_.find(key);
    return found != flights_.end() && found->second == flight;
  }

  /// Ends the owner's flight: keeps a success, forgets a failure, and wakes everyone who waits. Only the first call for
  /// a flight counts: whether this was it.
  bool finish(const Digest& key, const std::shared_ptr<BinaryFlight>& flight, BinaryResult result) {
    {
      const std::scoped_lock lock(mutex_);
      const auto found = flights_.find(key);
      // A failed key may be in another owner's flight by now.
      if (found == flights_.end() || found->second != flight) return false;
      flights_.erase(found);
      if (result.ok()) keep(key, *result);
    }
    flight->finish(std::move(result));
    return true;
  }

 private:
  /// Where there is no memory, it is not remembered, but those who wait get it.
  void keep(const Digest& key, const std::shared_ptr<const Binary>& binary) try {
    order_.push_back(key);
    try {
      if (!ready_.emplace(key, binary).second) return order_.pop_back();
    } catch (const std::bad_alloc&) {
      return order_.pop_back();
    }
    bytes_ += binary->code.size();
    while (bytes_ > max_bytes_ && order_.size() > 1) {
      const auto oldest = ready_.find(order_.front());
      bytes_ -= oldest->second->code.size();
      ready_.erase(oldest);
      order_.pop_front();
    }
  } catch (const std::bad_alloc&) {
  }

  const std::size_t max_bytes_;
  std::mutex mutex_;
  std::unordered_map<Digest, std::shared_ptr<const Binary>, DigestHash> ready_;
  std::unordered_map<Digest, std::shared_ptr<BinaryFlight>, DigestHash> flights_;
  std::deque<Digest> order_;
  std::size_t bytes_ = 0;
};

}  // namespace sl
