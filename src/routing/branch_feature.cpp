#include "routing/branch_feature.hpp"

#include <algorithm>
#include <limits>

namespace sl {
namespace {

Geometry geometry(const CandidateView& view) {
  return view.candidate.schedule->geometry(view.problem, view.candidate.config);
}

double threads(const CandidateView& view) {
  const Geometry launch = geometry(view);
  return static_cast<double>(launch.grid) * static_cast<double>(launch.block);
}

constexpr CandidateFeature features[] = {
    {"rank", "place in the schedule's own order, 0 = its first choice", [](const CandidateView& v) { return v.rank; }},
    {"threads", "threads a block", [](const CandidateView& v) { return static_cast<double>(geometry(v).block); }},
    {"smem", "bytes of dynamic shared memory a block",
     [](const CandidateView& v) { return static_cast<double>(geometry(v).dynamic_smem); }},
    {"blocks_per_sm", "blocks of the launch over the device's multiprocessors",
     [](const CandidateView& v) {
       return static_cast<double>(geometry(v).grid) / static_cast<double>(std::max(1, v.device.sm_count));
     }},
    {"outputs_per_thread", "outputs over the threads of the launch",
     [](const CandidateView& v) { return static_cast<double>(v.problem.y_elements()) / std::max(1.0, threads(v)); }},
};

constexpr std::string_view knob_prefix = "knob.";

}  // namespace

std::span<const CandidateFeature> candidate_features() { return features; }

std::optional<BranchFeature> BranchFeature::find(std::string_view name, bool of_candidate) {
  BranchFeature found;
  found.number_ = find_number_feature(name);
  found.word_ = find_name_feature(name);
  if (found.number_ != nullptr || found.word_ != nullptr) return found;
  if (!of_candidate) return std::nullopt;
  if (name.starts_with(knob_prefix) && name.size() > knob_prefix.size()) {
    found.knob_ = name.substr(knob_prefix.size());
    return found;
  }
  const auto at = std::find_if(std::begin(features), std::end(features),
                               [name](const CandidateFeature& feature) { return feature.name == name; });
  if (at == std::end(features)) return std::nullopt;
  found.candidate_ = at;
  return found;
}

double BranchFeature::number(const CandidateView& view) const {
  if (number_ != nullptr) return number_->value(view.problem);
  if (candidate_ != nullptr) return candidate_->value(view);
  for (const auto& [knob, value] : view.candidate.config.knobs) {
    if (knob == knob_) return value;
  }
  return std::numeric_limits<double>::infinity();
}

std::string branch_feature_list(bool of_candidate) {
  std::string list = feature_list();
  if (!of_candidate) return list;
  for (const CandidateFeature& feature : features) list += ", " + std::string(feature.name);
  return list + ", knob.NAME";
}

}  // namespace sl
