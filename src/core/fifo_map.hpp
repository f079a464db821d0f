// What a digest stands for, bounded: beyond the capacity the key that came first goes.
#pragma once

#include <cstddef>
#include <deque>
#include <unordered_map>

#include "core/digest.hpp"

namespace sl {

/// Not thread-safe. References hold until the next put().
template <class Value>
class FifoMap {
 public:
  explicit FifoMap(std::size_t capacity) : capacity_(capacity) {}

  /// Null where the key is not known.
  const Value* find(const Digest& key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
  }
  /// The key's value, a new one where it is not known; seeing it again makes it no younger.
  Value& put(const Digest& key) {
    const auto [it, added] = values_.try_emplace(key);
    if (!added) return it->second;
    order_.push_back(key);
    while (values_.size() > capacity_ && order_.size() > 1) {
      values_.erase(order_.front());
      order_.pop_front();
    }
    return it->second;
  }
  std::size_t size() const { return values_.size(); }

 private:
  std::size_t capacity_;
  std::unordered_map<Digest, Value, DigestHash> values_;
  std::deque<Digest> order_;  // oldest first
};

}  // namespace sl
