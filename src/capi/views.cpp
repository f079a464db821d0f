#include "capi/views.hpp"

#include "capi/call.hpp"
#include "core/types.hpp"

namespace sl::capi {
namespace {

// Fastest dimension first.
constexpr std::array<std::size_t, 4> order(bool channels_last) {
  return channels_last ? std::array<std::size_t, 4>{1, 3, 2, 0} : std::array<std::size_t, 4>{3, 2, 1, 0};
}

std::string list(const std::int64_t* values, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(values[i]);
  return text + "}";
}

Code refuse(Error& error, std::string message) {
  error = {Code::invalid, std::move(message)};
  return error.code;
}

}  // namespace

std::string dtype_text(std::int32_t dtype) {
  if (dtype < SLUICE_F32 || dtype > SLUICE_BF16) return std::to_string(dtype);
  return std::string(name(static_cast<DType>(dtype)));
}

Code unreadable(std::string_view who, const sluice_tensor& tensor, Rank rank, std::int32_t dtype, Error& error) {
  const int ndim = rank.ndim;
  if (tensor.ndim != ndim) {
    return refuse(error, std::string(who) + ".ndim = " + std::to_string(tensor.ndim) + ", must be " +
                             std::to_string(ndim) + " as x.ndim is");
  }
  if (tensor.dtype != dtype) {
    return refuse(
        error, std::string(who) + ".dtype = " + dtype_text(tensor.dtype) + ", must be x.dtype = " + dtype_text(dtype));
  }
  if (tensor.dims == nullptr) {
    return refuse(error, std::string(who) + ".dims = NULL, must point to " + std::to_string(ndim) + " dimensions");
  }
  for (int i = 0; i < ndim; ++i) {
    const bool batch = i == 0 && rank.batch;
    const std::int64_t least = batch ? 0 : 1, limit = batch ? batch_limit : size_limit;
    if (tensor.dims[i] >= least && tensor.dims[i] < limit) continue;
    return refuse(error, std::string(who) + ".dims[" + std::to_string(i) + "] = " + std::to_string(tensor.dims[i]) +
                             ", must be from " + std::to_string(least) + " to " + std::to_string(limit - 1));
  }
  return Code::ok;
}

bool packed(const View& view, bool channels_last) {
  if (!view.stated || view.dims[0] == 0) return true;
  std::int64_t expected = 1;
  for (const std::size_t i : order(channels_last)) {
    if (view.dims[i] == 1) continue;
    if (view.strides[i] != expected || __builtin_mul_overflow(expected, view.dims[i], &expected)) return false;
  }
  return true;
}

std::string describe_strided(const Call& call) {
  const sluice_tensor& tensor = *call.strided;
  const std::string_view who = call.strided_name;
  std::string text = std::string(who) + ".strides = " + list(tensor.strides, tensor.ndim) + " for dims " +
                     list(tensor.dims, tensor.ndim) + " are not ";
  if (who == "bias") return text + "packed, which is {1}; copy it";
  const bool weight = who == "w";
  const bool last = weight ? call.problem.weight_layout == WeightLayout::ohwi : call.problem.layout == Layout::nhwc;
  View view;
  for (int i = 0; i < tensor.ndim; ++i) {
    view.dims[static_cast<std::size_t>(tensor.ndim == 3 && i == 2 ? 3 : i)] = tensor.dims[i];
  }
  unsigned long long expected = 1;  // may wrap for sizes that no tensor has
  for (const std::size_t i : order(last)) {
    view.strides[i] = static_cast<std::int64_t>(expected);
    expected *= static_cast<unsigned long long>(view.dims[i]);
  }
  if (tensor.ndim == 3) view.strides[2] = view.strides[3];
  const std::string_view layout = weight ? name(call.problem.weight_layout) : name(call.problem.layout);
  return text + "packed " + std::string(layout) + ", which is " + list(view.strides.data(), tensor.ndim) +
         "; copy it into that layout";
}

const char* kept_for_strides(const Call& call) {
  switch (call.strided_name[0]) {
    case 'x':
      return "kept: x.strides are not those of a packed tensor in the stated layout";
    case 'w':
      return "kept: w.strides are not those of a packed tensor in the stated weight layout";
    case 'y':
      return "kept: y.strides are not those of a packed tensor in the stated layout";
    case 'z':
      return "kept: z.strides are not those of a packed tensor in the stated layout";
    default:
      return "kept: bias.strides are not those of a packed vector";
  }
}

}  // namespace sl::capi
