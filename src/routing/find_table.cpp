// Which routing table a device gets: the user's, else the shipped one for the device, else the conservative default.
#include "core/embedded.hpp"
#include "routing/device_files.hpp"
#include "routing/routing.hpp"

namespace sl {
namespace {

TableChoice chosen(RoutingTable table, std::vector<std::string> searched) {
  return {std::make_shared<const RoutingTable>(std::move(table)), std::move(searched)};
}

}  // namespace

Result<TableChoice> find_routing_table(const DeviceInfo& device, const std::string& user_path, const Log& log) {
  try {
    std::vector<std::string> searched;
    const DeviceFileKind kind{"routing table", "SLUICE_ROUTING_TABLE"};
    SL_ASSIGN(auto mine, find_user_file<RoutingTable>(device, user_path, kind, searched));
    if (mine) return chosen(*std::move(mine), std::move(searched));
    if (device.backend == "host") {
      // It is there to run everything, not to be fast.
      searched.emplace_back("built-in:host: takes everything");
      return chosen(RoutingTable::take_everything("built-in:host"), std::move(searched));
    }
    SL_ASSIGN(auto table, find_embedded<RoutingTable>(device, embedded_routing_json(), searched));
    if (!table) return Error{Code::internal, "the library holds no default routing table"};
    if (table->for_any_device()) {
      searched.push_back(table->origin() + ": the conservative default");
      log.write(LogLevel::info, "no routing table for " + device_text(device) +
                                    ": the conservative default takes few calls; give a measured table with "
                                    "SLUICE_ROUTING_TABLE (docs/routing.md)");
    }
    return chosen(*std::move(table), std::move(searched));
  } catch (const std::exception& e) {
    return Error{Code::internal, std::string("routing table not found: ") + e.what()};
  }
}

}  // namespace sl
