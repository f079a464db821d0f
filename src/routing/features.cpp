#include "routing/features.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sl {
namespace {

using P = const ConvProblem&;

double real(std::int64_t value) { return static_cast<double>(value); }

constexpr NumberFeature numbers[] = {
    {"cpg", "input channels a group", [](P p) { return real(p.channels_per_group()); }},
    {"multiplier", "output channels a group", [](P p) { return real(p.multiplier()); }},
    {"depthwise", "1 where groups = c", [](P p) { return p.depthwise() ? 1.0 : 0.0; }},
    {"groups", "groups", [](P p) { return real(p.groups); }},
    {"kernel_area", "r * s", [](P p) { return real(p.taps()); }},
    {"r", "kernel rows", [](P p) { return real(p.r); }},
    {"s", "kernel columns", [](P p) { return real(p.s); }},
    {"stride", "the larger stride", [](P p) { return real(std::max(p.stride_h, p.stride_w)); }},
    {"dilation", "the larger dilation, 1 = dense", [](P p) { return real(std::max(p.dil_h, p.dil_w)); }},
    {"n", "batch", [](P p) { return real(p.n); }},
    {"c", "input channels", [](P p) { return real(p.c); }},
    {"k", "output channels", [](P p) { return real(p.k); }},
    {"h", "input rows", [](P p) { return real(p.h); }},
    {"w", "input columns", [](P p) { return real(p.w); }},
    {"p", "output rows", [](P p) { return real(p.p); }},
    {"q", "output columns", [](P p) { return real(p.q); }},
    {"plane", "p * q", [](P p) { return real(p.p * p.q); }},
    {"outputs", "n * k * p * q", [](P p) { return real(p.y_elements()); }},
    {"macs", "multiply-adds, padding taps counted", [](P p) { return real(p.macs()); }},
    {"bytes", "bytes that a perfect kernel moves", [](P p) { return real(p.min_bytes()); }},
    {"align", "alignment class of the tensors, bytes", [](P p) { return real(p.align); }},
    {"bias", "1 where there is a bias", [](P p) { return p.bias == Bias::none ? 0.0 : 1.0; }},
    {"residual", "1 where a tensor is added", [](P p) { return p.residual ? 1.0 : 0.0; }},
    {"wide_offsets", "1 where an offset exceeds 32 bits", [](P p) { return p.needs_64bit_offsets() ? 1.0 : 0.0; }},
};

using W = std::string_view;

constexpr NameFeature names[] = {
    {"dtype", "f32, f16, bf16", [](P p) { return name(p.dtype); }, [](W w) { return parse_dtype(w).has_value(); }},
    {"layout", "nchw, nhwc", [](P p) { return name(p.layout); }, [](W w) { return parse_layout(w).has_value(); }},
    {"weight_layout", "oihw, ohwi", [](P p) { return name(p.weight_layout); },
     [](W w) { return parse_weight_layout(w).has_value(); }},
    {"activation", "none, relu, clip, silu ...", [](P p) { return name(p.activation); },
     [](W w) { return parse_activation(w).has_value(); }},
};

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return std::to_string(static_cast<std::int64_t>(value));
  return std::to_string(value);
}

}  // namespace

std::span<const NumberFeature> number_features() { return numbers; }
std::span<const NameFeature> name_features() { return names; }

const NumberFeature* find_number_feature(std::string_view name) {
  for (const NumberFeature& feature : numbers)
    if (feature.name == name) return &feature;
  return nullptr;
}

const NameFeature* find_name_feature(std::string_view name) {
  for (const NameFeature& feature : names)
    if (feature.name == name) return &feature;
  return nullptr;
}

std::string feature_list() {
  std::string list;
  for (const NumberFeature& feature : numbers) list += (list.empty() ? "" : ", ") + std::string(feature.name);
  for (const NameFeature& feature : names) list += ", " + std::string(feature.name);
  return list;
}

double feature_value(const ConvProblem& problem, std::string_view feature) {
  const NumberFeature* found = find_number_feature(feature);
  return found != nullptr ? found->value(problem) : std::numeric_limits<double>::quiet_NaN();
}

std::optional<std::string> missed(const Threshold& threshold, const ConvProblem& problem) {
  if (const NumberFeature* number = find_number_feature(threshold.feature)) {
    const double value = number->value(problem);
    if (!threshold.values.empty()) {
      std::string list;
      for (const double allowed : threshold.values) {
        if (allowed == value) return std::nullopt;
        list += (list.empty() ? "" : ", ") + number_text(allowed);
      }
      return threshold.feature + " is " + number_text(value) + ", not among [" + list + "]";
    }
    // Written so that a NaN bound would miss, not match.
    if ((!threshold.min || value >= *threshold.min) && (!threshold.max || value <= *threshold.max)) return std::nullopt;
    return threshold.feature + " is " + number_text(value) + ", not in [" +
           (threshold.min ? number_text(*threshold.min) : "-inf") + ", " +
           (threshold.max ? number_text(*threshold.max) : "inf") + "]";
  }
  const NameFeature* word = find_name_feature(threshold.feature);
  if (word == nullptr) return "there is no feature " + threshold.feature;
  const std::string_view value = word->value(problem);
  std::string list;
  for (const std::string& allowed : threshold.any_of) {
    if (allowed == value) return std::nullopt;
    list += (list.empty() ? "" : ", ") + allowed;
  }
  return threshold.feature + " is " + std::string(value) + ", not among [" + list + "]";
}

}  // namespace sl
