// The small vocabularies of a convolution call, with their text forms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sl {

enum class DType : std::uint8_t { f32, f16, bf16 };
enum class Layout : std::uint8_t { nchw, nhwc };        ///< of x, y and the residual z
enum class WeightLayout : std::uint8_t { oihw, ohwi };  ///< of w: [k][c/groups][r][s] or [k][r][s][c/groups]
enum class Bias : std::uint8_t {
  none,
  same,
  f32
};  ///< `same`: x's dtype. For dtype f32, `f32` is normalised to `same`

/// phi in y = phi(conv + bias + z); computed in fp32 before the one rounding.
enum class Activation : std::uint8_t {
  none,
  relu,
  clip,  ///< min(max(a, alpha), beta); ReLU6 is clip 0 6
  silu,
  hard_swish,
  gelu_erf,
  gelu_tanh,
  leaky_relu,  ///< a >= 0 ? a : alpha * a
};

constexpr std::size_t size_of(DType t) { return t == DType::f32 ? 4 : 2; }

std::string_view name(DType);
std::string_view name(Layout);
std::string_view name(WeightLayout);
std::string_view name(Bias);
std::string_view name(Activation);

/// Inverse of name(); nullopt for any other text.
std::optional<DType> parse_dtype(std::string_view);
std::optional<Layout> parse_layout(std::string_view);
std::optional<WeightLayout> parse_weight_layout(std::string_view);
std::optional<Bias> parse_bias(std::string_view);
std::optional<Activation> parse_activation(std::string_view);

}  // namespace sl
