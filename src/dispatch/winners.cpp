#include "dispatch/winners.hpp"

#include <exception>
#include <optional>
#include <utility>

namespace sl {

struct Winners::Flight {
  std::condition_variable landed;
  std::optional<Result<WinnerPtr>> outcome;  // set once, under mutex_
};

WinnerPtr Winners::find(const Digest& key) const {
  const std::lock_guard lock(mutex_);
  const WinnerPtr* const known = known_.find(key);
  return known == nullptr ? nullptr : *known;
}

Result<WinnerPtr> Winners::get(const Digest& key, const std::function<Result<Winner>()>& make) {
  std::shared_ptr<Flight> flight;
  {
    std::unique_lock lock(mutex_);
    if (const WinnerPtr* const known = known_.find(key)) return *known;
    if (const auto it = flights_.find(key); it != flights_.end()) {
      const std::shared_ptr<Flight> other = it->second;
      other->landed.wait(lock, [&] { return other->outcome.has_value(); });
      return *other->outcome;
    }
    flight = std::make_shared<Flight>();
    flights_.emplace(key, flight);
  }

  // Whatever happens in `make`, the flight must land: a waiter left behind would wait for ever.
  Result<WinnerPtr> outcome = Error{Code::internal, "deciding ended without an outcome"};
  try {
    Result<Winner> made = make();
    outcome = made.ok() ? Result<WinnerPtr>(std::make_shared<const Winner>(std::move(made).value()))
                        : Result<WinnerPtr>(std::move(made).error());
  } catch (const std::bad_alloc&) {
    outcome = Error{Code::out_of_memory, "out of memory"};
  } catch (const std::exception& error) {
    outcome = Error{Code::internal, error.what()};
  }

  const std::lock_guard lock(mutex_);
  flights_.erase(key);
  if (outcome.ok()) known_.put(key) = *outcome;
  flight->outcome = outcome;
  flight->landed.notify_all();
  return outcome;
}

void Winners::put(const Digest& key, WinnerPtr winner) {
  const std::lock_guard lock(mutex_);
  known_.put(key) = std::move(winner);
}

std::size_t Winners::size() const {
  const std::lock_guard lock(mutex_);
  return known_.size();
}

int Failures::record(const Digest& key, const std::string& reason, int before) {
  const std::lock_guard lock(mutex_);
  // Forgetting all of them costs each broken key a few more attempts; a list in order of age would cost more code.
  if (rows_.size() >= capacity && !rows_.contains(key)) rows_.clear();
  Row& row = rows_[key];
  row.reason = reason;
  if (row.count == before) ++row.count;
  return row.count;
}

int Failures::count(const Digest& key, std::string* reason) const {
  const std::lock_guard lock(mutex_);
  const auto it = rows_.find(key);
  if (it == rows_.end()) return 0;
  if (reason != nullptr) *reason = it->second.reason;
  return it->second.count;
}

void Failures::forget(const Digest& key) {
  const std::lock_guard lock(mutex_);
  rows_.erase(key);
}

}  // namespace sl
