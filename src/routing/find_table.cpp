// Which routing table a device gets: the user's, else the shipped one for the device, else the conservative default.
#include <algorithm>
#include <filesystem>

#include "core/embedded.hpp"
#include "core/json_reader.hpp"
#include "routing/routing.hpp"

namespace sl {
namespace {

namespace fs = std::filesystem;

TableChoice chosen(RoutingTable table, std::vector<std::string> searched) {
  return {std::make_shared<const RoutingTable>(std::move(table)), std::move(searched)};
}

std::string device_text(const DeviceInfo& device) {
  return device.name + " (capability " + std::to_string(device.capability) + ")";
}

Result<RoutingTable> load(const std::string& path) {
  SL_ASSIGN(const std::string text, read_text_file(path));
  return RoutingTable::from_json(text, path);
}

Result<RoutingTable> from_file(const DeviceInfo& device, const std::string& path) {
  SL_ASSIGN(RoutingTable table, load(path));
  if (!table.matches(device))
    return Error{Code::invalid, path + ": the routing table is for " + table.device_text() + ", the device is " +
                                    device_text(device) + "; give a table for this device, or a folder of tables"};
  return table;
}

Result<std::vector<std::string>> json_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator(); at.increment(error))
    if (at->path().extension() == ".json") files.push_back(at->path().string());
  if (error)
    return Error{Code::environment, folder + ": the folder of routing tables cannot be read: " + error.message()};
  std::sort(files.begin(), files.end());
  return files;
}

/// The folder's one table for the device; one for any device where there is none; nullopt where there is neither.
Result<std::optional<RoutingTable>> from_folder(const DeviceInfo& device, const std::string& folder,
                                                std::vector<std::string>& searched) {
  SL_ASSIGN(const std::vector<std::string> files, json_files(folder));
  std::optional<RoutingTable> best;
  for (const std::string& file : files) {
    SL_ASSIGN(RoutingTable table, load(file));
    if (!table.matches(device)) {
      searched.push_back(file + ": for " + table.device_text());
      continue;
    }
    if (best && best->for_any_device() == table.for_any_device())
      return Error{Code::invalid, "two routing tables are for " + table.device_text() + ": " + best->origin() +
                                      " and " + file + "; one would be right"};
    searched.push_back(file + ": matches");
    if (!best || best->for_any_device()) best = std::move(table);
  }
  if (files.empty()) searched.push_back(folder + ": no *.json in it");
  return best;
}

Result<RoutingTable> from_library(const DeviceInfo& device, std::vector<std::string>& searched) {
  std::optional<RoutingTable> fallback;
  for (const EmbeddedFile& file : embedded_routing_json()) {
    const std::string origin = "embedded:" + std::string(file.path.substr(0, file.path.rfind(".json")));
    SL_ASSIGN(RoutingTable table, RoutingTable::from_json(file.content, origin));
    if (table.for_any_device()) {
      fallback = std::move(table);
    } else if (table.matches(device)) {
      searched.push_back(origin + ": matches");
      return table;
    } else {
      searched.push_back(origin + ": for " + table.device_text());
    }
  }
  if (!fallback) return Error{Code::internal, "the library holds no default routing table"};
  searched.push_back(fallback->origin() + ": the conservative default");
  return *std::move(fallback);
}

}  // namespace

Result<TableChoice> find_routing_table(const DeviceInfo& device, const std::string& user_path, const Log& log) {
  try {
    std::vector<std::string> searched;
    if (!user_path.empty()) {
      std::error_code error;
      const fs::file_status status = fs::status(user_path, error);
      if (!fs::exists(status))
        return Error{Code::environment, user_path +
                                            ": the routing table (SLUICE_ROUTING_TABLE) does not exist; a JSON "
                                            "file or a folder of them would be right"};
      if (!fs::is_directory(status)) {
        SL_ASSIGN(RoutingTable table, from_file(device, user_path));
        searched.push_back(user_path + ": matches");
        return chosen(std::move(table), std::move(searched));
      }
      SL_ASSIGN(std::optional<RoutingTable> table, from_folder(device, user_path, searched));
      if (table) return chosen(*std::move(table), std::move(searched));
    }
    if (device.backend == "host") {
      // It is there to run everything, not to be fast.
      searched.push_back("built-in:host: takes everything");
      return chosen(RoutingTable::take_everything("built-in:host"), std::move(searched));
    }
    SL_ASSIGN(RoutingTable table, from_library(device, searched));
    if (table.for_any_device())
      log.write(LogLevel::info, "no routing table for " + device_text(device) +
                                    ": the conservative default takes few calls; give a measured table with "
                                    "SLUICE_ROUTING_TABLE (docs/routing.md)");
    return chosen(std::move(table), std::move(searched));
  } catch (const std::exception& e) {
    return Error{Code::internal, std::string("routing table not found: ") + e.what()};
  }
}

}  // namespace sl
