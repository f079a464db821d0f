#include "graph_onnx/attributes.hpp"

#include <algorithm>
#include <utility>

namespace sl::graph {

OnnxAttributes::OnnxAttributes(const onnx::NodeProto& node) : node_(node) {
  std::vector<std::string_view> names;
  for (const onnx::AttributeProto& attribute : node.attribute()) names.push_back(attribute.name());
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    error_ = Error{Code::invalid, "attribute \"" + std::string(*twice) + "\" is given twice"};
}

const onnx::AttributeProto* OnnxAttributes::get(std::string_view name, onnx::AttributeProto::AttributeType type,
                                                const char* what) {
  asked_.emplace_back(name);
  if (error_) return nullptr;
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() != name) continue;
    if (attribute.type() == type) return &attribute;
    error_ = Error{Code::invalid, "attribute \"" + std::string(name) + "\" must be " + what};
    return nullptr;
  }
  return nullptr;
}

std::int64_t OnnxAttributes::integer(std::string_view name, std::int64_t fallback) {
  const auto* attribute = get(name, onnx::AttributeProto::INT, "an integer");
  return attribute == nullptr ? fallback : attribute->i();
}

double OnnxAttributes::real(std::string_view name, double fallback) {
  const auto* attribute = get(name, onnx::AttributeProto::FLOAT, "a float");
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f());
}

std::string OnnxAttributes::text(std::string_view name, const std::string& fallback) {
  const auto* attribute = get(name, onnx::AttributeProto::STRING, "a string");
  return attribute == nullptr ? fallback : attribute->s();
}

std::vector<std::int64_t> OnnxAttributes::integers(std::string_view name, std::vector<std::int64_t> fallback) {
  const auto* attribute = get(name, onnx::AttributeProto::INTS, "a list of integers");
  if (attribute == nullptr) return fallback;
  return {attribute->ints().begin(), attribute->ints().end()};
}

bool OnnxAttributes::has(std::string_view name) const {
  return std::any_of(node_.attribute().begin(), node_.attribute().end(),
                     [&](const onnx::AttributeProto& attribute) { return attribute.name() == name; });
}

Status OnnxAttributes::finish() const { return error_ ? Status(*error_) : Status(); }

std::string OnnxAttributes::unknown() const {
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (std::find(asked_.begin(), asked_.end(), attribute.name()) == asked_.end()) return attribute.name();
  }
  return {};
}

std::string attributes_text(const onnx::NodeProto& node) {
  std::string out;
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    out += (out.empty() ? "" : ", ") + attribute.name();
    if (attribute.type() == onnx::AttributeProto::INT) out += " " + std::to_string(attribute.i());
    if (attribute.type() == onnx::AttributeProto::FLOAT) out += " " + std::to_string(attribute.f());
    if (attribute.type() == onnx::AttributeProto::STRING) out += " " + attribute.s();
    if (attribute.type() != onnx::AttributeProto::INTS) continue;
    const char* before = " [";
    for (const std::int64_t value : attribute.ints()) out += std::exchange(before, ", ") + std::to_string(value);
    out += attribute.ints_size() == 0 ? " []" : "]";
  }
  return out;
}

Result<std::vector<Attribute>> copy_attributes(const onnx::NodeProto& node) {
  std::vector<Attribute> out;
  for (const onnx::AttributeProto& from : node.attribute()) {
    switch (from.type()) {
      case onnx::AttributeProto::INT:
        out.push_back(Attribute::of(from.name(), static_cast<std::int64_t>(from.i())));
        break;
      case onnx::AttributeProto::FLOAT:
        out.push_back(Attribute::of(from.name(), static_cast<double>(from.f())));
        break;
      case onnx::AttributeProto::STRING:
        out.push_back(Attribute::of(from.name(), std::string(from.s())));
        break;
      case onnx::AttributeProto::INTS:
        out.push_back(Attribute::of(from.name(), std::vector<std::int64_t>(from.ints().begin(), from.ints().end())));
        break;
      case onnx::AttributeProto::FLOATS:
        out.push_back(Attribute::of(from.name(), std::vector<double>(from.floats().begin(), from.floats().end())));
        break;
      default:
        return Error{Code::invalid, "attribute \"" + from.name() + "\" is neither number, text nor a list of numbers"};
    }
  }
  return out;
}

}  // namespace sl::graph
