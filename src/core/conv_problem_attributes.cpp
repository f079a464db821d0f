// Text to ConvProblem: the `key=value` half.
#include <algorithm>
#include <array>
#include <charconv>

#include "core/conv_problem.hpp"
#include "core/conv_problem_text.hpp"

namespace sl::text {
namespace {

template <class T>
bool set(T& field, const std::optional<T>& value) {
  if (value) field = *value;
  return value.has_value();
}

// The whole of `value`, independent of the locale; a leading + is not a number.
template <class T>
bool set_number(T& field, std::string_view value) {
  const char* last = value.data() + value.size();
  T number{};
  const auto [end, error] = std::from_chars(value.data(), last, number);
  if (error != std::errc() || end != last) return false;
  field = number;
  return true;
}

struct Attribute {
  std::string_view key;
  const char* right;  // what its value may be
  bool (*read)(ConvProblem&, std::string_view value);
};

constexpr std::array<Attribute, 9> attributes = {{
    {"dt", "f32, f16 or bf16", [](ConvProblem& p, std::string_view v) { return set(p.dtype, parse_dtype(v)); }},
    {"tag", "nchw or nhwc", [](ConvProblem& p, std::string_view v) { return set(p.layout, parse_layout(v)); }},
    {"wtag", "oihw or ohwi",
     [](ConvProblem& p, std::string_view v) { return set(p.weight_layout, parse_weight_layout(v)); }},
    {"bias", "none, same or f32", [](ConvProblem& p, std::string_view v) { return set(p.bias, parse_bias(v)); }},
    {"act", "none, relu, clip, silu, hard_swish, gelu_erf, gelu_tanh or leaky_relu",
     [](ConvProblem& p, std::string_view v) { return set(p.activation, parse_activation(v)); }},
    {"alpha", "a number, as in alpha=0.1", [](ConvProblem& p, std::string_view v) { return set_number(p.alpha, v); }},
    {"beta", "a number, as in beta=6 or beta=inf",
     [](ConvProblem& p, std::string_view v) { return set_number(p.beta, v); }},
    {"z", "0 or 1",
     [](ConvProblem& p, std::string_view v) {
       p.residual = v == "1";
       return v == "0" || v == "1";
     }},
    {"align", "2, 4, 8 or 16", [](ConvProblem& p, std::string_view v) { return set_number(p.align, v); }},
}};

}  // namespace

Status parse_attributes(std::string_view text, std::size_t offset, ConvProblem& problem) {
  std::array<bool, attributes.size()> seen{};
  std::size_t at = offset;
  while (true) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) return {};
    const std::size_t start = at;
    while (at < text.size() && !is_blank(text[at])) ++at;
    const std::string_view token = text.substr(start, at - start);
    const std::size_t equals = token.find('=');
    const std::string_view key = token.substr(0, equals);
    const auto* attribute = std::find_if(attributes.begin(), attributes.end(), [&](auto& a) { return a.key == key; });
    if (equals == std::string_view::npos || attribute == attributes.end()) {
      return token_error(token, start, "must be one of dt= tag= wtag= bias= act= alpha= beta= z= align= with a value");
    }
    bool& given = seen[static_cast<std::size_t>(attribute - attributes.begin())];
    if (given) return token_error(token, start, "`" + std::string(key) + "` is given twice; once is right");
    given = true;
    if (!attribute->read(problem, token.substr(equals + 1))) {
      return token_error(token, start, "`" + std::string(key) + "` must be " + attribute->right);
    }
  }
}

}  // namespace sl::text
