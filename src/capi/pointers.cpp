#include <array>
#include <cstdint>

#include "capi/call.hpp"
#include "capi/views.hpp"

namespace sl::capi {
namespace {

std::string address(const void* pointer) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (auto value = reinterpret_cast<std::uintptr_t>(pointer); value != 0; value >>= 4) {
    text.insert(text.begin(), digits[value & 15]);
  }
  return "0x" + text;
}

Code refuse(Error& error, std::string message) {
  error = {Code::invalid, std::move(message)};
  return error.code;
}

bool right(const ConvProblem& v, const Extents& bytes, const Tensors& t) {
  const bool bias = v.bias != Bias::none;
  const std::uintptr_t bias_element = v.bias == Bias::f32 ? 4 : size_of(v.dtype);
  const bool present =
      all(t.x != nullptr, t.w != nullptr, t.y != nullptr, (t.bias != nullptr) == bias, (t.z != nullptr) == v.residual);
  const bool aligned = (((number(t.x) | number(t.w) | number(t.z) | number(t.y)) & (size_of(v.dtype) - 1)) |
                        (number(t.bias) & (bias_element - 1))) == 0;
  return all(present, aligned, y_is_apart(bytes, t));
}

/// Finds what is wrong, if anything is.
Code find_wrong(const ConvProblem& v, const Extents& bytes, const Tensors& tensors, Data data, Error& error) {
  struct Row {
    const char* name;
    const void* pointer;
    std::uint64_t bytes;
    std::uintptr_t element;
    bool present;
  };
  const std::uintptr_t element = size_of(v.dtype);
  const std::array<Row, 5> rows = {{
      {"x", tensors.x, bytes.x, element, true},
      {"w", tensors.w, bytes.w, element, true},
      {"bias", tensors.bias, bytes.bias, v.bias == Bias::f32 ? 4 : element, v.bias != Bias::none},
      {"z", tensors.z, bytes.z, element, v.residual},
      {"y", tensors.y, bytes.y, element, true},
  }};
  for (const Row& row : rows) {
    if (!row.present) {
      if (row.pointer == nullptr) continue;
      return refuse(error, std::string(row.name) + " = " + address(row.pointer) + ", must be NULL: the call has none");
    }
    if (row.pointer == nullptr) {
      if (data == Data::optional || v.n == 0) continue;
      return refuse(error, std::string(row.name) + ".data = NULL, must be device memory of " +
                               std::to_string(row.bytes) + " bytes");
    }
    if (reinterpret_cast<std::uintptr_t>(row.pointer) % row.element != 0) {
      return refuse(error, std::string(row.name) + ".data = " + address(row.pointer) +
                               ", must be a multiple of its element's " + std::to_string(row.element) + " bytes");
    }
    if (&row == &rows.back() || tensors.y == nullptr || v.n == 0) continue;
    if (!overlap(row.pointer, row.bytes, tensors.y, bytes.y)) continue;
    if (row.name[0] == 'z' && row.pointer == tensors.y) continue;
    return refuse(error, "y.data = " + address(tensors.y) + " (" + std::to_string(bytes.y) + " bytes) overlaps " +
                             row.name + ".data = " + address(row.pointer) + " (" + std::to_string(row.bytes) +
                             " bytes); only z may share memory with y, and then must be y itself");
  }
  return Code::ok;
}

}  // namespace

Code check_pointers(const ConvProblem& v, const Extents& bytes, const Tensors& tensors, Data data, Error& error) {
  if (right(v, bytes, tensors)) [[likely]]
    return Code::ok;
  return find_wrong(v, bytes, tensors, data, error);
}

}  // namespace sl::capi
