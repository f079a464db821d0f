#include "device/host/stream.hpp"

#include <chrono>

namespace sl {

Stream HostStreams::create() {
  auto stream = std::make_shared<HostStream>();
  const std::lock_guard lock(mutex_);
  Stream const handle = stream.get();
  live_.emplace(handle, std::move(stream));
  return handle;
}

void HostStreams::destroy(Stream handle) {
  const std::lock_guard lock(mutex_);
  live_.erase(handle);
}

std::shared_ptr<HostStream> HostStreams::find(Stream handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(handle);
  return found == live_.end() ? nullptr : found->second;
}

Result<double> HostRecording::replay() {
  const std::lock_guard lock(stream_->mutex);
  const auto start = std::chrono::steady_clock::now();
  for (const auto& call : calls_) SL_TRY(call());
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace sl
