// Everything that a context has, opened in one place: environment, device, compiler, stores, routing table, dispatcher.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/environment.hpp"
#include "core/log.hpp"
#include "core/result.hpp"
#include "device/device.hpp"
#include "dispatch/dispatcher.hpp"
#include "jit/backends.hpp"
#include "jit/binary_cache.hpp"
#include "routing/decision_store.hpp"
#include "routing/routing.hpp"
#include "store/file_store.hpp"

namespace sl::tool {

/// "cuda", "cuda:1", "host"; anything else is Code::invalid.
struct DeviceName {
  bool host = false;
  int ordinal = 0;
};
Result<DeviceName> parse_device_name(std::string_view);

struct SessionOptions {
  std::string device;              ///< as parse_device_name(); empty = cuda:0 where there is a GPU, else host
  std::shared_ptr<Device> opened;  ///< used instead where not null
  int emulate = 90;                ///< capability that the host device emulates
  std::optional<Policy> policy;    ///< none: the environment's, else first use
  bool force = false;              ///< take calls that routing would keep
  bool require_cache = false;      ///< a cache that cannot be written is an error, not a warning
};

/// The two stores of a cache directory. `root` is empty where there is no cache.
struct Stores {
  std::filesystem::path root;
  std::shared_ptr<FileStore> binaries, decisions;
};
/// Opens nothing on disk; `log` must outlive the stores.
Stores open_stores(const Environment&, const Log& log);

/// Members are in order of construction: the dispatcher goes first when the session ends. Thread-safe as its parts are.
struct Session {
  Environment environment;
  DispatcherOptions options;
  std::shared_ptr<Device> device;
  std::shared_ptr<Compiler> compiler;
  TableChoice table;
  std::shared_ptr<const DecisionTable> pinned;
  Stores stores;
  std::shared_ptr<BinaryCache> binaries;
  std::shared_ptr<BinaryCache> probes;  ///< the same store, counted apart: what measures the machine is not the call's
  std::shared_ptr<DecisionStore> decisions;
  std::unique_ptr<Dispatcher> dispatcher;
};

/// `log` must outlive the session.
Result<std::unique_ptr<Session>> open_session(const Environment&, const SessionOptions&, const Log& log);

/// The schedules that SLUICE_FORCE_SCHEDULE leaves: none named = every one.
std::vector<std::string> forced(const Environment&);

/// preflight() as the environment asks for it.
Preflight look(const ConvProblem&, const DeviceInfo&, Regular, const Environment&, const Sanitized* passed);

/// Whether it names a description in configs/devices/.
bool is_described(const std::string& device);

/// Opens a device alone.
Result<std::shared_ptr<Device>> open_device(const DeviceName&, int emulate, const Environment&, const Log&);

/// Destroys a stream at the end of the scope.
struct StreamOwner {
  Device& device;
  Stream stream;
  ~StreamOwner() { device.destroy_stream(stream); }
};

/// Makes the session's stores, caches and dispatcher anew, as a second process would find them; device, compiler and
/// table stay. Plans of the old dispatcher are gone.
void renew_dispatcher(Session&, const Log& log);

}  // namespace sl::tool
