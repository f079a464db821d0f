#include "tuning/compiling.hpp"

#include <exception>
#include <system_error>
#include <utility>

namespace sl {

Compiling::Compiling(BinaryCache& cache, const DeviceInfo& device, std::vector<KernelSpec> specs, int threads,
                     bool beside, Clock now)
    : cache_(cache),
      device_(device),
      specs_(std::move(specs)),
      threads_(threads),
      now_(std::move(now)),
      start_(now_()),
      last_(start_) {
  arrived_.reserve(specs_.size());
  if (beside) try {
      beside_ = std::thread([this] { compile(); });
    } catch (const std::system_error&) {
    }
  if (!beside_.joinable()) compile();
}

Compiling::~Compiling() {
  if (beside_.joinable()) beside_.join();
}

void Compiling::compile() noexcept {
  try {
    cache_.get(specs_, device_, threads_, [this](std::size_t index, Result<std::shared_ptr<const Binary>> binary) {
      const std::scoped_lock lock(mutex_);
      arrived_.push_back({index, std::move(binary)});
      last_ = now_();
      there_.notify_one();
    });
  } catch (const std::exception&) {  // no memory: next() ends early
  }
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  there_.notify_one();
}

std::optional<Compiling::Arrival> Compiling::next() {
  std::unique_lock lock(mutex_);
  there_.wait(lock, [this] { return taken_ < arrived_.size() || taken_ == specs_.size() || ended_; });
  if (taken_ == arrived_.size()) return std::nullopt;
  return std::move(arrived_[taken_++]);
}

double Compiling::took_ms() const {
  const std::scoped_lock lock(mutex_);
  return std::chrono::duration<double, std::milli>(last_ - start_).count();
}

}  // namespace sl
