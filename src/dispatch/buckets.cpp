#include "dispatch/buckets.hpp"

#include <string>
#include <utility>

namespace sl {
namespace {

Digest key_of(const ConvProblem& problem, Regular regular) {
  return KeyBuilder()
      .add("bucket", problem.batch_bucket().digest().hex())
      .add("regular", regular == Regular::yes ? "yes" : "no")
      .finish();
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
