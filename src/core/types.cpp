#include "core/types.hpp"

#include <array>

namespace sl {
namespace {

// Indexed by enumerator.
constexpr std::array<std::string_view, 3> dtype_names = {"f32", "f16", "bf16"};
constexpr std::array<std::string_view, 2> layout_names = {"nchw", "nhwc"};
constexpr std::array<std::string_view, 2> weight_layout_names = {"oihw", "ohwi"};
constexpr std::array<std::string_view, 3> bias_names = {"none", "same", "f32"};
constexpr std::array<std::string_view, 8> activation_names = {"none",       "relu",     "clip",      "silu",
                                                              "hard_swish", "gelu_erf", "gelu_tanh", "leaky_relu"};

// A value cast from a foreign integer may be none of the enumerators; printing one in an error message must be safe.
template <class E, std::size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, E value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : "?";
}

template <class E, std::size_t N>
std::optional<E> find_in(const std::array<std::string_view, N>& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view name(DType v) { return name_in(dtype_names, v); }
std::string_view name(Layout v) { return name_in(layout_names, v); }
std::string_view name(WeightLayout v) { return name_in(weight_layout_names, v); }
std::string_view name(Bias v) { return name_in(bias_names, v); }
std::string_view name(Activation v) { return name_in(activation_names, v); }

std::optional<DType> parse_dtype(std::string_view t) { return find_in<DType>(dtype_names, t); }
std::optional<Layout> parse_layout(std::string_view t) { return find_in<Layout>(layout_names, t); }
std::optional<WeightLayout> parse_weight_layout(std::string_view t) {
  return find_in<WeightLayout>(weight_layout_names, t);
}
std::optional<Bias> parse_bias(std::string_view t) { return find_in<Bias>(bias_names, t); }
std::optional<Activation> parse_activation(std::string_view t) { return find_in<Activation>(activation_names, t); }

}  // namespace sl
