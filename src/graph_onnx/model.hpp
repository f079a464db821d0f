// ONNX models: load, replace, save. The only header of this room that others need.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/conv_decider.hpp"
#include "graph/pass.hpp"

namespace sl::graph {

struct OnnxOptions {
  Target target;
  /// Whether the regular lowering can compile a convolution: its problem, or nullptr where it is none that can be
  /// spelled (the plan's reason says why). Empty = it can all.
  std::function<Regular(const ConvProblem*)> regular;
  std::optional<std::int64_t> batch;  ///< what a first dimension that is not fixed is planned for
  bool dry_run = false;
  const Log* log = nullptr;
};

/// A node of a model as a call. `reason` says why it is none that Sluice serves, in words that all such nodes share;
/// empty where `problem` holds: with the activation behind it where the epilogue can hold that.
struct OnnxCall {
  std::string node;  ///< its name
  ConvProblem problem;
  std::string reason;
  bool open_batch = false;  ///< the reason is that the batch is not fixed
};

class OnnxModel {
 public:
  /// Code::environment where the file cannot be read; Code::invalid, naming file and place, where it is no model or a
  /// broken one.
  static Result<OnnxModel> load(const std::string& path);
  static Result<OnnxModel> parse(std::string_view bytes, std::string origin);
  ~OnnxModel();
  OnnxModel(OnnxModel&&) noexcept;
  OnnxModel& operator=(OnnxModel&&) noexcept;

  /// Replaces Conv nodes by ai.sluice::Conv2d, all or nothing. An error that keeps the model from being looked at
  /// (names that nothing defines, contradictory shapes) is the outcome's, like any other.
  Outcome replace(const OnnxOptions&);

  /// Every node, in order, those of nested graphs included. `batch`: what a first dimension that is not fixed is taken
  /// for. Errors name the model and the node.
  Result<std::vector<OnnxCall>> calls(std::optional<std::int64_t> batch);

  std::string bytes() const;
  /// Whether weights are in files beside the model: it can be saved into the same folder only.
  bool has_external_data() const;
  /// Writes a temporary beside `path`, syncs it and renames it there: the file appears complete or not at all.
  Status save(const std::string& path) const;

 private:
  struct Impl;
  explicit OnnxModel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sl::graph
