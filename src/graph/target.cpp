#include "graph/target.hpp"

#include <charconv>
#include <string>

#include "core/json_reader.hpp"
#include "jit/backends.hpp"

namespace sl::graph {
namespace {

Result<DeviceInfo> host(std::string_view text, std::string_view capability) {
  HostDeviceOptions options;
  if (!capability.empty()) {
    const auto [end, code] =
        std::from_chars(capability.data(), capability.data() + capability.size(), options.capability);
    if (code != std::errc{} || end != capability.data() + capability.size() || options.capability < 50 ||
        options.capability > 990) {
      return Error{Code::invalid, "device \"" + std::string(text) + "\": \"" + std::string(capability) +
                                      "\" must be a whole number from 50 to 990"};
    }
  }
  return open_host_device(options)->info();
}

}  // namespace

Result<DeviceInfo> target_device(std::string_view text) {
  if (text == "host") return host(text, {});
  if (text.starts_with("host:")) return host(text, text.substr(5).empty() ? "?" : text.substr(5));
  if (text.ends_with(".json")) {
    SL_ASSIGN(const std::string description, read_text_file(std::string(text)));
    return parse_device_info(description, text);
  }
  std::string known;
  for (const std::string& stem : described_devices()) {
    if (stem == text) return described_device(stem);
    known += stem + ", ";
  }
  return Error{Code::invalid, "device \"" + std::string(text) + "\", must be one of " + known +
                                  "host, host:CAPABILITY or the path of a description that ends in .json"};
}

}  // namespace sl::graph
