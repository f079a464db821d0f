// A node's attributes, read strictly: each known name once, with the type that it should have.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "graph/editor.hpp"

namespace sl::graph {

/// Getters return the fallback where the attribute is not there, or after the first error, which finish() reports.
class OnnxAttributes {
 public:
  explicit OnnxAttributes(const onnx::NodeProto&);
  std::int64_t integer(std::string_view name, std::int64_t fallback);
  double real(std::string_view name, double fallback);
  std::string text(std::string_view name, const std::string& fallback);
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> fallback);
  bool has(std::string_view name) const;
  /// The first error: a wrong type, a name that occurs twice.
  Status finish() const;
  /// A name that no getter asked for; "" where there is none.
  std::string unknown() const;

 private:
  const onnx::AttributeProto* get(std::string_view name, onnx::AttributeProto::AttributeType type, const char* what);
  const onnx::NodeProto& node_;
  std::vector<std::string> asked_;
  std::optional<Error> error_;
};

/// As a signature has them: "group 8, pads [1, 1, 1, 1]"; "" where there are none.
std::string attributes_text(const onnx::NodeProto&);

/// All of them as the editor's; an error where one is of a kind that it has none for (tensors, graphs).
Result<std::vector<Attribute>> copy_attributes(const onnx::NodeProto&);

}  // namespace sl::graph
