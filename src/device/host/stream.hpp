// Streams of the host device: what is enqueued runs at once, one thing at a time a stream; or is recorded.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/result.hpp"
#include "device/device.hpp"

namespace sl {

struct HostStream {
  std::mutex mutex;  // held while something runs; guards the rest
  bool recording = false;
  std::vector<std::function<Status()>> recorded;
};

/// The live streams by handle. Thread-safe.
class HostStreams {
 public:
  Stream create();
  void destroy(Stream);
  /// Null for a handle that is no live stream.
  std::shared_ptr<HostStream> find(Stream) const;

 private:
  mutable std::mutex mutex_;
  std::map<Stream, std::shared_ptr<HostStream>> live_;
};

class HostRecording final : public Recording {
 public:
  HostRecording(std::shared_ptr<HostStream> stream, std::vector<std::function<Status()>> calls)
      : stream_(std::move(stream)), calls_(std::move(calls)) {}
  Result<double> replay() override;

 private:
  std::shared_ptr<HostStream> stream_;
  std::vector<std::function<Status()>> calls_;
};

}  // namespace sl
