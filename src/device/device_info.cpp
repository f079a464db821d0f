#include "device/device_info.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/embedded.hpp"
#include "core/json_reader.hpp"

namespace sl {
namespace {

constexpr std::string_view suffix = ".json";
constexpr std::int64_t most_bytes = std::int64_t{1} << 50;

Status check_backend(const DeviceInfo& info, std::string_view origin) {
  const auto wrong = [&](const std::string& what) { return Error{Code::invalid, std::string(origin) + ": " + what}; };
  if (info.backend != "cuda" && info.backend != "host" && info.backend != "rocm")
    return wrong("$.backend: is \"" + info.backend + "\", cuda, host or rocm would be right");
  const bool has_capability = info.backend != "rocm";
  if (has_capability && info.capability < 50)
    return wrong("$.capability: is " + std::to_string(info.capability) +
                 ", 10 * major + minor would be right (90 for 9.0)");
  if (!has_capability && info.capability != 0)
    return wrong("$.capability: is " + std::to_string(info.capability) + ", 0 would be right for backend rocm");
  return {};
}

}  // namespace

Digest DeviceInfo::decision_digest() const {
  return KeyBuilder()
      .add("name", name)
      .add("backend", backend)
      .add("capability", capability)
      .add("sm_count", sm_count)
      .add("l2_bytes", l2_bytes)
      .add("smem_optin", smem_optin)
      .add("mig", mig)
      .finish();
}

bool device_supports(int min_capability, const DeviceInfo& device, bool arch_specific) {
  if (device.backend != "cuda" && device.backend != "host") return false;
  return arch_specific ? device.capability == min_capability : device.capability >= min_capability;
}

Result<DeviceInfo> parse_device_info(std::string_view text, std::string_view origin) {
  SL_ASSIGN(const nlohmann::json document, parse_json(text, origin));
  JsonFields fields{JsonView(document, origin)};
  DeviceInfo info;
  info.name = fields.text("name");
  info.backend = fields.text("backend");
  info.capability = static_cast<int>(fields.integer("capability", 0, 9990));
  info.sm_count = static_cast<int>(fields.integer("sm_count", 1, 100000));
  info.l2_bytes = fields.integer("l2_bytes", 0, most_bytes);
  info.smem_optin = fields.count("smem_optin");
  info.smem_per_sm = fields.count("smem_per_sm");
  info.registers_per_sm = fields.count("registers_per_sm");
  info.max_threads_per_sm = fields.count("max_threads_per_sm");
  info.memory_bytes = fields.integer("memory_bytes", 0, most_bytes);
  info.mig = fields.text("mig", "");
  (void)fields.text("source", "");  // where the figures come from: for people
  SL_TRY(fields.finish());
  if (info.name.empty())
    return Error{Code::invalid,
                 std::string(origin) + ": $.name: is empty, the driver's name of the device would be right"};
  SL_TRY(check_backend(info, origin));
  return info;
}

Result<DeviceInfo> described_device(std::string_view stem) {
  for (const EmbeddedFile& file : embedded_device_json())
    if (file.path == std::string(stem) + std::string(suffix))
      return parse_device_info(file.content, "embedded:" + std::string(file.path));
  std::string known;
  for (const std::string& name : described_devices()) known += (known.empty() ? "" : ", ") + name;
  return Error{Code::not_found, "no description of a device \"" + std::string(stem) + "\"; there are: " + known};
}

std::vector<std::string> described_devices() {
  std::vector<std::string> stems;
  for (const EmbeddedFile& file : embedded_device_json())
    if (file.path.ends_with(suffix)) stems.emplace_back(file.path.substr(0, file.path.size() - suffix.size()));
  return stems;
}

std::string to_json(const DeviceInfo& info) {
  nlohmann::ordered_json out;
  out["name"] = info.name;
  out["backend"] = info.backend;
  out["capability"] = info.capability;
  out["sm_count"] = info.sm_count;
  out["l2_bytes"] = info.l2_bytes;
  out["smem_optin"] = info.smem_optin;
  out["smem_per_sm"] = info.smem_per_sm;
  out["registers_per_sm"] = info.registers_per_sm;
  out["max_threads_per_sm"] = info.max_threads_per_sm;
  out["memory_bytes"] = info.memory_bytes;
  out["mig"] = info.mig;
  return dump_json(out, true);
}

}  // namespace sl
