// `sluice env`: the support report. Finding nothing is a finding, so it always ends with exit code 0.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/session.hpp"
#include "tuner/support.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::ordered_json;

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json compiler_json(Compiler& compiler) {
  const auto identity = compiler.identity();
  Json out = {{"available", identity.available},
              {"path", text_or_null(identity.path)},
              {"version", nullptr},
              {"problem", text_or_null(identity.why_not)}};
  if (!identity.available) return out;
  if (const auto version = compiler.version(); version.ok()) {
    out["version"] = version.value();
  } else {
    out["problem"] = version.error().message;
  }
  return out;
}

Json store_json(FileStore& store) {
  std::uint64_t bytes = 0, entries = 0, damaged = 0;
  for (const auto& entry : store.list()) {
    bytes += entry.bytes;
    ++entries;
    damaged += entry.valid ? 0 : 1;
  }
  const Status writable = store.writable();
  return {{"path", text_or_null(store.options().directory.string())},
          {"writable", writable.ok() && !store.options().directory.empty()},
          {"problem", writable.ok() ? Json(nullptr) : Json(writable.error().message)},
          {"entries", entries},
          {"bytes", bytes},
          {"max_bytes", store.options().max_bytes},
          {"damaged", damaged}};
}

Json table_json(const std::string& device_name, const DeviceInfo& device, const Environment& environment,
                const Log& log) {
  Json out = {{"device", device_name},     {"name", device.name}, {"table", nullptr}, {"rules", 0},
              {"searched", Json::array()}, {"problem", nullptr}};
  const auto choice = find_routing_table(device, environment.routing_table, log);
  if (!choice.ok()) {
    out["problem"] = choice.error().message;
    return out;
  }
  out["table"] = choice.value().table->origin();
  out["rules"] = choice.value().table->rules().size();
  out["searched"] = choice.value().searched;
  return out;
}

Json heuristic_json(const std::string& device_name, const DeviceInfo& device, const Environment& environment) {
  Json out = {{"device", device_name}, {"heuristic", nullptr}, {"searched", Json::array()}, {"problem", nullptr}};
  const auto choice = find_heuristic(device, environment.heuristic);
  if (!choice.ok()) {
    out["problem"] = choice.error().message;
    return out;
  }
  if (choice->heuristic != nullptr) out["heuristic"] = choice->heuristic->origin();
  out["searched"] = choice->searched;
  return out;
}

// GPUs with their driver, then the host device; and the tables that serve them.
void add_devices(Json& report, const Environment& environment, const Log& log) {
  Json cuda = {{"devices", Json::array()}, {"driver", nullptr}, {"problem", nullptr}};
  Json tables = Json::array(), heuristics = Json::array();
  const auto add = [&](const std::string& name, const DeviceInfo& info) {
    tables.push_back(table_json(name, info, environment, log));
    heuristics.push_back(heuristic_json(name, info, environment));
  };
  const auto count = cuda_device_count(environment);
  if (!count.ok()) cuda["problem"] = count.error().message;
  for (int i = 0; count.ok() && i < count.value(); ++i) {
    const std::string device_name = "cuda:" + std::to_string(i);
    const auto device = open_cuda_device(i, environment, log);
    if (!device.ok()) {
      cuda["problem"] = device.error().message;
      continue;
    }
    cuda["driver"] = device.value()->driver();
    cuda["devices"].push_back(device.value()->info().name);
    add(device_name, device.value()->info());
  }
  add("host", open_host_device()->info());
  report["cuda"] = std::move(cuda);
  report["routing_tables"] = std::move(tables);
  report["heuristics"] = std::move(heuristics);
}

// Every schedule of this build, and whether a process may try it on a GPU.
void add_schedules(Json& report, const Environment& environment) {
  const auto list = find_sanitized(environment.sanitized);
  report["sanitized"] = {{"list", list.ok() ? Json(*list == nullptr ? "all" : (*list)->origin()) : Json(nullptr)},
                         {"problem", list.ok() ? Json(nullptr) : Json(list.error().message)}};
  report["schedules"] = Json::array();
  for (const Schedule* schedule : all_schedules()) {
    const Digest digest = schedule->digest();
    const bool passed = list.ok() && *list != nullptr && (*list)->has(schedule->name, digest);
    report["schedules"].push_back({{"schedule", schedule->name}, {"digest", digest.hex()}, {"sanitized", passed}});
  }
}

std::string schedules_text(const Json& report) {
  const Json& list = report["sanitized"];
  std::string untested;
  std::size_t passed = 0;
  for (const auto& row : report["schedules"]) {
    if (row["sanitized"].get<bool>()) {
      ++passed;
    } else {
      untested += (untested.empty() ? "; not " : ", ") + row["schedule"].get<std::string>();
    }
  }
  if (list["list"].is_null()) return list["problem"].get<std::string>();
  if (list["list"] == "all") return std::to_string(report["schedules"].size()) + ", all tried on GPUs, whatever passed";
  return std::to_string(report["schedules"].size()) + ", " + std::to_string(passed) + " passed the sanitizers (" +
         list["list"].get<std::string>() + ")" + untested;
}

Json variables_json() {
  Json known = Json::array();
  for (const auto& variable : environment_variables()) {
    const char* value = std::getenv(variable.name);
    known.push_back({{"name", variable.name},
                     {"value", value == nullptr ? Json(nullptr) : Json(value)},
                     {"default", variable.fallback},
                     {"meaning", variable.meaning}});
  }
  return known;
}

// A SLUICE_ variable that nothing reads is a typing error more often than not.
Json unknown_variables() {
  Json unknown = Json::array();
  for (const auto& [variable, value] : variables_with_prefix("SLUICE_")) {
    bool known = false;
    for (const auto& row : environment_variables()) known = known || variable == row.name;
    if (!known) unknown.push_back({{"name", variable}, {"value", value}});
  }
  return unknown;
}

Json collect(const Environment& environment, const Log& log) {
  Json report = {{"version", SLUICE_VERSION},
                 {"build", build_description()},
                 {"system", operating_system() + ", " + libc_version()}};
  add_devices(report, environment, log);
  report["nvrtc"] = compiler_json(*make_nvrtc_compiler(environment, log));
  report["host_compiler"] = compiler_json(*make_host_compiler(environment, log));
  const Stores stores = open_stores(environment, log);
  report["cache"] = {{"root", text_or_null(stores.root.string())},
                     {"binaries", store_json(*stores.binaries)},
                     {"decisions", store_json(*stores.decisions)}};
  add_schedules(report, environment);
  report["loaded"] = mapped_libraries({"libcuda.so", "libcudart", "libnvrtc", "libcudnn", "libnvidia"});
  report["variables"] = variables_json();
  report["unknown_variables"] = unknown_variables();
  return report;
}

std::string or_dash(const Json& value) { return value.is_string() ? value.get<std::string>() : "-"; }

std::string compiler_text(const Json& c) {
  if (!c["available"].get<bool>()) return "not found: " + or_dash(c["problem"]);
  std::string text = or_dash(c["version"]) + "  " + or_dash(c["path"]);
  return c["problem"].is_null() ? text : text + "  (" + or_dash(c["problem"]) + ")";
}

std::string store_text(const Json& s) {
  if (s["path"].is_null()) return "none";
  std::string text = std::to_string(s["entries"].get<std::uint64_t>()) + " entries, " +
                     size(s["bytes"].get<std::uint64_t>()) + " of " + size(s["max_bytes"].get<std::uint64_t>());
  if (s["damaged"].get<std::uint64_t>() > 0) text += ", " + s["damaged"].dump() + " damaged";
  text += s["writable"].get<bool>() ? ", writable" : ", NOT writable: " + or_dash(s["problem"]);
  return text + "  " + or_dash(s["path"]);
}

std::string text_of(const Json& r) {
  std::string out = field("sluice", or_dash(r["version"]) + "  (" + or_dash(r["build"]) + ")");
  out += field("system", or_dash(r["system"]));
  out += field("driver",
               r["cuda"]["driver"].is_null() ? "none: " + or_dash(r["cuda"]["problem"]) : or_dash(r["cuda"]["driver"]));
  for (const auto& device : r["cuda"]["devices"]) out += field("GPU", or_dash(device));
  out += field("NVRTC", compiler_text(r["nvrtc"]));
  out += field("host c++", compiler_text(r["host_compiler"]));
  for (const auto& library : r["loaded"]) out += field("loaded", or_dash(library));
  out += field("cache", r["cache"]["root"].is_null() ? "none" : or_dash(r["cache"]["root"]));
  out += field("binaries", store_text(r["cache"]["binaries"]));
  out += field("decisions", store_text(r["cache"]["decisions"]));
  for (const auto& t : r["routing_tables"]) {
    out += field("table", or_dash(t["device"]) + ": " +
                              (t["table"].is_null() ? or_dash(t["problem"])
                                                    : or_dash(t["table"]) + ", " + t["rules"].dump() + " rules"));
    for (const auto& place : t["searched"]) out += field("", styled(Style::faint, or_dash(place)));
  }
  for (const auto& h : r["heuristics"]) {
    const Json& found = h["heuristic"].is_null() ? h["problem"] : h["heuristic"];
    out += field("heuristic", or_dash(h["device"]) + ": " + (found.is_null() ? "none" : or_dash(found)));
    for (const auto& place : h["searched"]) out += field("", styled(Style::faint, or_dash(place)));
  }
  out += field("schedules", schedules_text(r));
  for (const auto& v : r["variables"]) {
    if (!v["value"].is_null()) out += field("set", or_dash(v["name"]) + "=" + or_dash(v["value"]));
  }
  for (const auto& v : r["unknown_variables"]) {
    out += field("unknown", or_dash(v["name"]) + "=" + or_dash(v["value"]) + ": nothing reads it");
  }
  return out;
}

}  // namespace

int env_command(const Options& options) {
  const auto environment = environment_of(options);
  if (!environment.ok()) return fail(environment.error());
  const Log log(stderr_sink(options.verbose), options.verbose ? LogLevel::debug : LogLevel::error);
  const Json report = collect(environment.value(), log);
  const std::string text = options.json ? dump_json(report, true) : text_of(report);
  std::fputs(text.c_str(), stdout);
  return exit_done;
}

}  // namespace sl::tool
