// Scalar conversions. A double goes to a 16-bit format in one rounding: by way of float it would be rounded twice.
#include <bit>
#include <cstring>

#include "reference/reference.hpp"

namespace sl {
namespace {

// A binary format of 16 bits: sign, exponent, mantissa.
struct Format {
  int mantissa_bits;
  int exponent_bias;
  std::uint16_t infinity;  // all ones in the exponent
};
constexpr Format half = {10, 15, 0x7C00};
constexpr Format bfloat = {7, 127, 0x7F80};

// Round to nearest, ties to even, subnormals included; too large becomes infinity.
std::uint16_t round_to(const Format& format, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 48) & 0x8000);
  const auto exponent_field = static_cast<int>((bits >> 52) & 0x7FF);
  const std::uint64_t fraction = bits & ((1ULL << 52) - 1);
  if (exponent_field == 0x7FF) {
    const std::uint32_t quiet = fraction == 0 ? 0U : 1U << (format.mantissa_bits - 1);
    return static_cast<std::uint16_t>(sign | format.infinity | quiet);
  }
  const int exponent = exponent_field - 1023;
  const int least_normal = 1 - format.exponent_bias;
  const int below = exponent < least_normal ? least_normal - exponent : 0;
  const int shift = 52 - format.mantissa_bits + below;
  if (shift > 53) return sign;  // less than half of the smallest subnormal; a double's own subnormals land here too
  const std::uint64_t significand = fraction | (1ULL << 52);
  const std::uint64_t kept = significand >> shift;
  const std::uint64_t lost = significand & ((1ULL << shift) - 1);
  const std::uint64_t tie = 1ULL << (shift - 1);
  const std::uint64_t rounded = kept + ((lost > tie || (lost == tie && (kept & 1) != 0)) ? 1 : 0);
  // `rounded` holds the leading one where the result is normal; adding it to the exponent below carries as it should,
  // from the largest subnormal to the smallest normal and from the largest finite value to infinity.
  const std::int64_t exponent_part = below > 0 ? 0 : static_cast<std::int64_t>(exponent + format.exponent_bias - 1);
  const std::int64_t magnitude = (exponent_part << format.mantissa_bits) + static_cast<std::int64_t>(rounded);
  const std::int64_t capped = magnitude < format.infinity ? magnitude : format.infinity;
  return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(capped));
}

template <class T>
T read(const std::byte* base, std::int64_t index) {
  T value;
  std::memcpy(&value, base + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void write(std::byte* base, std::int64_t index, T value) {
  std::memcpy(base + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

float half_to_float(std::uint16_t value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x8000U) << 16;
  const std::uint32_t exponent = (value >> 10) & 0x1FU;
  const std::uint32_t mantissa = value & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;  // exact
    return sign == 0 ? magnitude : -magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 127 - 15) << 23) | (mantissa << 13));
}

std::uint16_t float_to_half(float value) { return round_to(half, static_cast<double>(value)); }
std::uint16_t double_to_half(double value) { return round_to(half, value); }
float bfloat_to_float(std::uint16_t value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }
std::uint16_t double_to_bfloat(double value) { return round_to(bfloat, value); }

double load_element(DType type, const std::byte* base, std::int64_t index) {
  switch (type) {
    case DType::f16:
      return static_cast<double>(half_to_float(read<std::uint16_t>(base, index)));
    case DType::bf16:
      return static_cast<double>(bfloat_to_float(read<std::uint16_t>(base, index)));
    case DType::f32:
      break;
  }
  return static_cast<double>(read<float>(base, index));
}

void store_element(DType type, std::byte* base, std::int64_t index, double value) {
  switch (type) {
    case DType::f16:
      return write(base, index, double_to_half(value));
    case DType::bf16:
      return write(base, index, double_to_bfloat(value));
    case DType::f32:
      break;
  }
  write(base, index, static_cast<float>(value));
}

}  // namespace sl
