// What the pass did, node by node, and why it failed where it did.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "routing/routing.hpp"

namespace sl::graph {

enum class Action : std::uint8_t {
  keep,      ///< the regular lowering compiles it
  take,      ///< replaced (in a dry run: would be)
  absorbed,  ///< part of another node's replacement
  undone,    ///< OPTIONAL, and replacing it failed: the regular lowering compiles it, a warning says why
  fail,      ///< REQUIRED, and it cannot be replaced
};
std::string_view name(Action);

struct NodeReport {
  std::string op, name, signature;
  Verdict verdict = Verdict::unsupported;
  Action action = Action::keep;
  std::string rule, reason;
  double speedup = 0;  ///< expected; 0 = not known
  int absorbed = 0;    ///< further nodes that the new one stands for
};

/// Wall time in seconds. `undo_log` is the share of `rewrite` that remembering edits took.
struct Times {
  double plan = 0, rewrite = 0, undo_log = 0;
};

struct Report {
  std::string device;
  std::int64_t graph_nodes = 0;   ///< all, before the pass
  std::vector<NodeReport> nodes;  ///< those whose op has a planner, in order
  std::vector<std::string> warnings;
  Times times;
  std::int64_t count(Verdict) const;
  std::int64_t count(Action) const;
};

/// What state a failed pass left the graph in.
enum class GraphState : std::uint8_t {
  untouched,  ///< no edit was made
  restored,   ///< every edit was undone
  damaged,    ///< an undo failed: the graph is part old, part new, and must not be used
};
std::string_view name(GraphState);

struct Failure {
  std::string op, name, signature, reason;
};

/// Why a graph could not be replaced. Nothing was: see `state`.
struct ReplacementError {
  Code code = Code::internal;
  std::string message;            ///< complete: names every failure
  std::vector<Failure> failures;  ///< REQUIRED nodes that cannot be served, or the one whose rewrite failed
  GraphState state = GraphState::untouched;
  std::string undo_error;  ///< where damaged
};

/// One JSON object: device, nodes, counts, warnings, times, error (null where `error` is).
std::string to_json(const Report&, const ReplacementError* error);

}  // namespace sl::graph
