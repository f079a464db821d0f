#include "tuner/cudnn/plan.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace sl::cudnn {
namespace {

Status for_device(const Context& context, Descriptor& descriptor, Attribute attribute) {
  return context.device == nullptr ? Status{} : descriptor.set(attribute, *context.device);
}

const char* name(HeuristicMode mode) {
  switch (mode) {
    case HeuristicMode::instant:
      return "instant";
    case HeuristicMode::b:
      return "b";
    case HeuristicMode::fallback:
      return "fallback";
    case HeuristicMode::a:
      break;
  }
  return "a";
}

/// "k2=1,k5=0": what the configuration sets.
Result<std::string> knobs_of(const Descriptor& config) {
  SL_ASSIGN(const auto knobs, config.get_descriptors(Attribute::config_knobs, Kind::knob_choice));
  std::string text;
  for (const Descriptor& knob : knobs) {
    SL_ASSIGN(const auto type, knob.get_enums(Attribute::knob_type, Type::knob_type, 1));
    SL_ASSIGN(const std::int64_t value, knob.get_int(Attribute::knob_value));
    if (type.empty()) return Error{Code::device, "a knob choice of cuDNN has no type"};
    text += (text.empty() ? "k" : ",k") + std::to_string(type[0]) + "=" + std::to_string(value);
  }
  return text;
}

Result<EngineChoice> describe(Descriptor config, std::string mode) {
  SL_ASSIGN(const auto engines, config.get_descriptors(Attribute::config_engine, Kind::engine));
  if (engines.size() != 1) return Error{Code::device, "an engine configuration of cuDNN names no engine"};
  EngineChoice choice;
  choice.mode = std::move(mode);
  SL_ASSIGN(const std::int64_t index, engines[0].get_int(Attribute::engine_index));
  SL_ASSIGN(const std::string knobs, knobs_of(config));
  choice.name = "eng" + std::to_string(index) + "{" + knobs + "}";
  SL_ASSIGN(choice.notes, engines[0].get_enums(Attribute::engine_notes, Type::numerical_note, note_count));
  choice.config = std::move(config);
  return choice;
}

Result<EngineChoice> engine_at(const Context& context, const Graph& graph, std::int64_t index) {
  SL_ASSIGN(Descriptor engine, Descriptor::make(*context.library, Kind::engine));
  SL_TRY(engine.set(Attribute::engine_graph, graph.graph));
  SL_TRY(engine.set(Attribute::engine_index, index));
  SL_TRY(for_device(context, engine, Attribute::engine_device));
  SL_TRY(engine.finalize());
  SL_ASSIGN(Descriptor config, Descriptor::make(*context.library, Kind::engine_config));
  SL_TRY(config.set(Attribute::config_engine, engine));
  SL_TRY(config.finalize());
  SL_ASSIGN(EngineChoice choice, describe(std::move(config), "every"));
  choice.engine = std::move(engine);
  return choice;
}

void add_new(std::vector<EngineChoice>& all, std::vector<EngineChoice> more) {
  for (EngineChoice& one : more) {
    const auto same = [&](const EngineChoice& there) { return there.name == one.name; };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(std::move(one));
  }
}

}  // namespace

Result<std::vector<EngineChoice>> ask_heuristic(const Context& context, const Graph& graph, HeuristicMode mode) {
  SL_ASSIGN(Descriptor heuristic, Descriptor::make(*context.library, Kind::heuristic));
  SL_TRY(heuristic.set(Attribute::heuristic_graph, graph.graph));
  SL_TRY(heuristic.set(Attribute::heuristic_mode, Type::heuristic_mode, static_cast<int>(mode)));
  SL_TRY(for_device(context, heuristic, Attribute::heuristic_device));
  SL_TRY(heuristic.finalize());
  SL_ASSIGN(auto configs, heuristic.get_descriptors(Attribute::heuristic_results, Kind::engine_config));
  std::vector<EngineChoice> out;
  for (Descriptor& config : configs) {
    SL_ASSIGN(EngineChoice choice, describe(std::move(config), name(mode)));
    out.push_back(std::move(choice));
  }
  return out;
}

Result<std::vector<EngineChoice>> every_engine(const Context& context, const Graph& graph) {
  SL_ASSIGN(const std::int64_t count, graph.graph.get_int(Attribute::graph_engine_count));
  std::vector<EngineChoice> out;
  for (std::int64_t index = 0; index < count; ++index) {
    auto choice = engine_at(context, graph, index);
    if (choice.ok()) out.push_back(std::move(choice).value());  // most engines cannot do most graphs
  }
  return out;
}

Result<std::vector<EngineChoice>> choices(const Context& context, const Graph& graph, bool every) {
  std::vector<EngineChoice> all;
  Status first;
  for (const HeuristicMode mode :
       {HeuristicMode::a, HeuristicMode::b, HeuristicMode::instant, HeuristicMode::fallback}) {
    auto named = ask_heuristic(context, graph, mode);
    if (named.ok()) {
      add_new(all, std::move(named).value());
    } else if (first.ok()) {
      first = std::move(named).error();
    }
  }
  if (every) {
    SL_ASSIGN(auto others, every_engine(context, graph));
    add_new(all, std::move(others));
  }
  if (!all.empty()) return all;
  if (!first.ok()) return std::move(first).error();
  return Error{Code::unsupported, "no heuristic of cuDNN names an engine"};
}

std::vector<std::string> note_names(const std::vector<int>& notes) {
  static constexpr std::array<const char*, note_count> names = {
      "tensor_core",  "down_convert_inputs", "reduced_precision_reduction",
      "fft",          "nondeterministic",    "winograd",
      "winograd_4x4", "winograd_6x6",        "winograd_13x13",
      "strict_nan"};
  std::vector<std::string> out;
  for (const int note : notes) {
    const bool known = note >= 0 && note < note_count;
    out.push_back(known ? names[static_cast<std::size_t>(note)] : "note " + std::to_string(note));
  }
  return out;
}

Result<Plan> make_plan(const Context& context, const EngineChoice& choice) {
  Plan out;
  SL_ASSIGN(out.plan, Descriptor::make(*context.library, Kind::plan));
  SL_TRY(out.plan.set(Attribute::plan_config, choice.config));
  if (context.handle != nullptr) SL_TRY(out.plan.set(Attribute::plan_handle, Type::handle, 1, &context.handle));
  SL_TRY(for_device(context, out.plan, Attribute::plan_device));
  SL_TRY(out.plan.finalize());
  SL_ASSIGN(out.workspace_bytes, out.plan.get_int(Attribute::plan_workspace));
  return out;
}

Result<Descriptor> make_pack(const Context& context, const std::vector<std::int64_t>& uids,
                             const std::vector<void*>& pointers, void* workspace) {
  SL_ASSIGN(Descriptor pack, Descriptor::make(*context.library, Kind::variant_pack));
  SL_TRY(pack.set(Attribute::pack_uids, uids));
  SL_TRY(
      pack.set(Attribute::pack_pointers, Type::pointer, static_cast<std::int64_t>(pointers.size()), pointers.data()));
  SL_TRY(pack.set(Attribute::pack_workspace, Type::pointer, 1, &workspace));
  SL_TRY(pack.finalize());
  return pack;
}

}  // namespace sl::cudnn
