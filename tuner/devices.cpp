// `sluice devices`: what is in this machine, and what is described well enough to reason about.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/session.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::ordered_json;

struct Named {
  std::string name;  ///< what --device takes
  DeviceInfo info;
};

struct Found {
  std::vector<Named> here, described;
  std::string gpu_problem;  ///< why there is no GPU
};

Found look(const Environment& environment, const Log& log) {
  Found found;
  const auto count = cuda_device_count(environment);
  if (!count.ok()) found.gpu_problem = count.error().message;
  for (int i = 0; count.ok() && i < count.value(); ++i) {
    const auto device = open_cuda_device(i, environment, log);
    if (device.ok()) {
      found.here.push_back({"cuda:" + std::to_string(i), device.value()->info()});
    } else {
      warn(device.error().message);
    }
  }
  found.here.push_back({"host", open_host_device()->info()});
  for (const auto& stem : described_devices()) {
    if (auto info = described_device(stem); info.ok()) {
      found.described.push_back({stem, std::move(info).value()});
    } else {
      warn(info.error().message);
    }
  }
  return found;
}

Json list_json(const std::vector<Named>& devices) {
  Json list = Json::array();
  for (const auto& [device_name, info] : devices) {
    Json entry = {{"device", device_name}};
    entry.update(Json::parse(to_json(info)));
    list.push_back(std::move(entry));
  }
  return list;
}

std::string list_text(const std::vector<Named>& devices) {
  Grid grid({"--device", "name", "backend", "capability", "SMs", "L2", "smem/block", "memory", "MIG"});
  for (const auto& [device_name, d] : devices) {
    const std::string capability =
        d.capability == 0 ? "none" : std::to_string(d.capability / 10) + "." + std::to_string(d.capability % 10);
    const auto bytes = [](std::int64_t count) {
      return count > 0 ? size(static_cast<std::uint64_t>(count)) : std::string("unknown");
    };
    grid.row({device_name, d.name, d.backend, capability, std::to_string(d.sm_count), bytes(d.l2_bytes),
              bytes(d.smem_optin), bytes(d.memory_bytes), d.mig});
  }
  return grid.text("  ");
}

}  // namespace

int devices_command(const Options& options) {
  const auto environment = environment_of(options);
  if (!environment.ok()) return fail(environment.error());
  const Log log(stderr_sink(options.verbose), options.verbose ? LogLevel::debug : LogLevel::warning);
  const Found found = look(environment.value(), log);
  if (options.json) {
    const Json report = {{"devices", list_json(found.here)},
                         {"described", list_json(found.described)},
                         {"gpu_problem", found.gpu_problem.empty() ? Json(nullptr) : Json(found.gpu_problem)}};
    std::fputs(dump_json(report, true).c_str(), stdout);
    return exit_done;
  }
  std::printf("%s\n%s", styled(Style::strong, "In this machine").c_str(), list_text(found.here).c_str());
  if (!found.gpu_problem.empty()) std::printf("  no GPU: %s\n", found.gpu_problem.c_str());
  std::printf("%s\n%s", styled(Style::strong, "Described (for `sluice explain --device`)").c_str(),
              list_text(found.described).c_str());
  return exit_done;
}

}  // namespace sl::tool
