// Engines of a graph, and plans made of them.
#pragma once

#include <string>
#include <vector>

#include "tuner/cudnn/graph.hpp"

namespace sl::cudnn {

/// An engine with its knobs set, as a heuristic or the list of all engines named it.
struct EngineChoice {
  std::string name;  ///< "eng6{k2=1,k5=0}"; equal names are equal choices
  std::string mode;  ///< who named it first: "a", "b", "fallback", "instant", or "every"
  std::vector<int> notes;
  Descriptor engine, config;  ///< must outlive the plans that are made of them
};

/// What a heuristic mode answers, best first. An Error where it does not know the graph.
Result<std::vector<EngineChoice>> ask_heuristic(const Context&, const Graph&, HeuristicMode);

/// Every engine that can do the graph, with its knobs at their defaults.
Result<std::vector<EngineChoice>> every_engine(const Context&, const Graph&);

/// Choices of all heuristic modes in the order a, b, instant, fallback, each once; with `every` also the other engines.
/// A mode that fails is left out; where all do, the first one's Error.
Result<std::vector<EngineChoice>> choices(const Context&, const Graph&, bool every);

/// Words of an engine's numerical notes: "tensor_core", "winograd", ...
std::vector<std::string> note_names(const std::vector<int>& notes);

struct Plan {
  Descriptor plan;
  std::int64_t workspace_bytes = 0;
};
/// May compile kernels (seconds). Code::unsupported where the engine cannot do it after all.
Result<Plan> make_plan(const Context&, const EngineChoice&);

/// The pointers that a plan runs on. `uids` and `pointers` are of equal length.
Result<Descriptor> make_pack(const Context&, const std::vector<std::int64_t>& uids, const std::vector<void*>& pointers,
                             void* workspace);

}  // namespace sl::cudnn
