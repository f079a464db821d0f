#include "routing/decision_store.hpp"

#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"

namespace sl {

DecisionStore::DecisionStore(std::shared_ptr<FileStore> store) : store_(std::move(store)) {}

std::optional<Found> DecisionStore::find(const ConvProblem& problem, const DeviceInfo& device,
                                         const std::string& driver, const CandidateSet& set) const {
  if (!store_) return std::nullopt;
  const std::optional<StoreEntry> entry = store_->get(decision_key(problem, device));
  if (!entry) return std::nullopt;
  // The file is whole (its checksum held), so what cannot be read was written by a library of another schema: a miss.
  Result<Decision> decision = decision_from_json(entry->payload);
  if (!decision.ok()) return std::nullopt;
  const Match match = match_level(decision.value(), problem, device, driver, set);
  if (match == Match::none) return std::nullopt;
  return Found{std::move(decision).value(), match};
}

Status DecisionStore::save(const ConvProblem& problem, const DeviceInfo& device, const Decision& decision) {
  if (!store_) return {};
  if (decision.schedule.empty())
    return Error{Code::invalid, "decision for " + decision.problem + " has no schedule; only winners are stored"};
  nlohmann::ordered_json meta;
  meta["schema"] = 1;
  meta["problem"] = decision.problem;
  meta["device"] = device.name;
  meta["schedule"] = decision.schedule;
  meta["config"] = decision.config;
  meta["driver"] = decision.driver;
  meta["compiler"] = decision.compiler;
  return store_->put(decision_key(problem, device), {dump_json(meta, false), to_json(decision)});
}

}  // namespace sl
