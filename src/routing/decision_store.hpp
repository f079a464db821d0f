// Winners on disk: the decision store (user), and decision tables in one JSON file (shipped, or given for policy
// `pinned`).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "routing/decision.hpp"
#include "store/file_store.hpp"

namespace sl {

struct Found {
  Decision decision;
  Match match = Match::none;
};

/// Thread-safe. A stored winner counts only while its schedule exists with the same digest and can still run the
/// problem with that configuration; otherwise it is a miss.
class DecisionStore {
 public:
  explicit DecisionStore(std::shared_ptr<FileStore>);
  std::optional<Found> find(const ConvProblem&, const DeviceInfo&, const std::string& driver,
                            const CandidateSet&) const;
  Status save(const ConvProblem&, const DeviceInfo&, const Decision&);

 private:
  std::shared_ptr<FileStore> store_;
};

/// `{"schema": 1, "device": {...}, "decisions": [Decision...]}`. Immutable after loading.
class DecisionTable {
 public:
  static Result<DecisionTable> from_json(std::string_view json, std::string_view origin);
  static Result<DecisionTable> load(const std::string& path);
  std::optional<Found> find(const ConvProblem&, const DeviceInfo&, const std::string& driver,
                            const CandidateSet&) const;
  std::size_t size() const { return rows_.size(); }
  static std::string to_json(const DeviceInfo&, const std::vector<Decision>&);

 private:
  std::map<Digest, Decision> rows_;
};

/// Whether the winner was run and timed: then the decision itself says that these sources run this problem on this
/// device, wherever it was tuned.
bool tried(const Decision&);
/// Whether a stored decision still applies: schedule known, digest equal, configuration in the space, can_run, and the
/// schedule passed the sanitizers or was tried. Also yields the match level.
Match match_level(const Decision&, const ConvProblem&, const DeviceInfo&, const std::string& driver,
                  const CandidateSet&);

}  // namespace sl
