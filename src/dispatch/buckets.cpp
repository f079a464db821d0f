#include "dispatch/buckets.hpp"

#include <span>
#include <utility>

#include "dispatch/plan_key.hpp"

namespace sl {
namespace {

Digest key_of(const ConvProblem& problem, Regular regular) {
  const PlanTable::Key key = plan_key(problem.batch_bucket(), regular);
  return digest_bytes(std::as_bytes(std::span(key)));
}

}  // namespace

void Buckets::note(const ConvProblem& problem, Regular regular, Served served) {
  const Digest key = key_of(problem, regular);
  const std::lock_guard lock(mutex_);
  served_.put(key) = std::move(served);
}

std::optional<Buckets::Served> Buckets::find(const ConvProblem& problem, Regular regular) const {
  const Digest key = key_of(problem, regular);
  const std::lock_guard lock(mutex_);
  const Served* const found = served_.find(key);
  return found == nullptr ? std::nullopt : std::optional(*found);
}

}  // namespace sl
