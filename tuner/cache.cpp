// `sluice cache`: what is in the two stores, whether it is sound, and how to make it smaller.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/session.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::ordered_json;

struct NamedStore {
  const char* name;
  FileStore* store;
};

// File clock to UTC text.
std::string when(std::filesystem::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  const std::time_t seconds =
      std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::system_clock::duration>(system));
  std::tm utc{};
  char text[32] = "";
  if (::gmtime_r(&seconds, &utc) != nullptr) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &utc);
  return text;
}

Json meta_of(const StoreListing& entry) {
  auto meta = Json::parse(entry.meta, nullptr, false);
  return meta.is_discarded() ? Json(nullptr) : meta;
}

// The one field of an entry's provenance that tells people most.
std::string what(const StoreListing& entry) {
  if (!entry.valid) return "damaged: " + entry.problem;
  const auto meta = meta_of(entry);
  for (const char* key : {"problem", "entry", "schedule"}) {
    if (meta.is_object() && meta.contains(key) && meta[key].is_string()) return meta[key].get<std::string>();
  }
  return {};
}

Json entry_json(const StoreListing& entry) {
  return {{"file", entry.path.string()}, {"key", entry.key.hex()}, {"bytes", entry.bytes},
          {"used", when(entry.used)},    {"valid", entry.valid},   {"problem", entry.problem},
          {"meta", meta_of(entry)}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

int list(const Stores& stores, const std::vector<NamedStore>& named, bool json, bool damaged_only) {
  Json report = {{"root", stores.root.string()}, {"stores", Json::array()}, {"damaged", 0}};
  std::vector<std::string> unread;
  Grid grid({"store", "key", "bytes", "used (UTC)", "what"});
  std::uint64_t bytes = 0, count = 0, damaged = 0;
  for (const auto& [store_name, store] : named) {
    Json entries = Json::array();
    std::uint64_t store_bytes = 0;
    const Status readable = store->readable();
    if (!readable.ok()) unread.push_back(readable.error().message);
    for (const auto& entry : readable.ok() ? store->list() : std::vector<StoreListing>()) {
      ++count;
      store_bytes += entry.bytes;
      damaged += entry.valid ? 0 : 1;
      entries.push_back(entry_json(entry));
      if (damaged_only && entry.valid) continue;
      grid.row({store_name, entry.key.hex().substr(0, 12), std::to_string(entry.bytes), when(entry.used), what(entry)});
    }
    bytes += store_bytes;
    report["stores"].push_back({{"name", store_name},
                                {"path", store->options().directory.string()},
                                {"problem", text_or_null(readable.ok() ? std::string() : readable.error().message)},
                                {"bytes", store_bytes},
                                {"max_bytes", store->options().max_bytes},
                                {"entries", std::move(entries)}});
  }
  report["damaged"] = damaged;
  if (json) {
    std::fputs(dump_json(report, true).c_str(), stdout);
  } else {
    if (count > 0 && (!damaged_only || damaged > 0)) std::fputs(grid.text().c_str(), stdout);
    const std::string not_read =
        unread.empty() ? "" : ", " + std::to_string(unread.size()) + " of 2 stores not looked at";
    std::printf("%s: %llu entries, %s, %llu damaged%s\n", stores.root.c_str(), static_cast<unsigned long long>(count),
                size(bytes).c_str(), static_cast<unsigned long long>(damaged), not_read.c_str());
  }
  for (const auto& problem : unread) (damaged_only ? complain : warn)(problem);
  if (damaged_only && damaged > 0) {
    complain(std::to_string(damaged) + " damaged entries in " + stores.root.string() +
             "; they count as absent and are replaced on next use, or remove all with `sluice cache clear`");
  }
  return damaged_only && (damaged > 0 || !unread.empty()) ? exit_environment : exit_done;
}

// Frees by `remove`, which returns bytes, and says how much.
template <class Remove>
int free_bytes(const std::vector<NamedStore>& named, const Stores& stores, bool json, Remove remove) {
  Json report = {{"root", stores.root.string()}, {"freed", Json::object()}};
  for (const auto& [store_name, store] : named) {
    const auto freed = remove(*store);
    if (!freed.ok()) return fail(freed.error());
    report["freed"][store_name] = freed.value();
    if (!json) std::printf("%s: %s freed\n", store_name, size(freed.value()).c_str());
  }
  if (json) std::fputs(dump_json(report, true).c_str(), stdout);
  return exit_done;
}

}  // namespace

int cache_command(const Options& options) {
  const auto environment = environment_of(options);
  if (!environment.ok()) return fail(environment.error());
  const Log log(stderr_sink(options.verbose), options.verbose ? LogLevel::debug : LogLevel::warning);
  const auto stores = open_stores(environment.value(), log);
  if (stores.root.empty()) {
    complain("no cache directory: SLUICE_CACHE_DIR is \"off\", or neither it, XDG_CACHE_HOME nor HOME is set");
    return exit_environment;
  }
  const std::vector<NamedStore> named = {{"binaries", stores.binaries.get()}, {"decisions", stores.decisions.get()}};
  switch (options.command) {
    case Command::cache_ls:
      return list(stores, named, options.json, false);
    case Command::cache_verify:
      return list(stores, named, options.json, true);
    case Command::cache_prune: {
      const auto keep =
          options.max_mb >= 0 ? static_cast<std::uint64_t>(options.max_mb) << 20 : environment.value().cache_max_bytes;
      return free_bytes(named, stores, options.json, [keep](FileStore& store) { return store.prune(keep); });
    }
    case Command::cache_clear:
      return free_bytes(named, stores, options.json, [](FileStore& store) { return store.clear(); });
    default:
      if (options.json) {
        const Json report = {{"root", stores.root.string()},
                             {"binaries", stores.binaries->options().directory.string()},
                             {"decisions", stores.decisions->options().directory.string()}};
        std::fputs(dump_json(report, true).c_str(), stdout);
      } else {
        std::printf("%s\n", stores.root.c_str());
      }
      return exit_done;
  }
}

}  // namespace sl::tool
