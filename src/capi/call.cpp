#include "capi/call.hpp"

#include <cstdint>
#include <iterator>

#include "capi/views.hpp"

namespace sl::capi {
namespace {

std::string text(std::int64_t value) { return std::to_string(value); }
std::string at(const char* field, int index) { return std::string(field) + "[" + std::to_string(index) + "]"; }

Code refuse(Error& error, std::string message) {
  error = {Code::invalid, std::move(message)};
  return error.code;
}

Code check_enum(const char* field, std::int32_t value, std::int32_t count, const char* what, Error& error) {
  if (value >= 0 && value < count) return Code::ok;
  return refuse(error,
                std::string(field) + " = " + text(value) + ", must be a " + what + " (0 to " + text(count - 1) + ")");
}

Code check_range(const std::string& field, std::int64_t value, std::int64_t least, Error& error) {
  if (value >= least && value < size_limit) return Code::ok;
  return refuse(error, field + " = " + text(value) + ", must be from " + text(least) + " to " + text(size_limit - 1));
}

bool in_range(std::int64_t value, std::int64_t least) { return value >= least && value < size_limit; }

bool within(std::int32_t value, std::uint32_t count) { return static_cast<std::uint32_t>(value) < count; }

Code check_enums(const sluice_conv2d_args& args, Error& error) {
  const bool fine = all(within(args.layout, 2), within(args.weight_layout, 2), within(args.activation, 8),
                        within(args.regular, 2), within(args.x.dtype, 3));
  if (fine) [[likely]]
    return Code::ok;
  struct Row {
    const char* field;
    std::int32_t value, count;
    const char* what;
  };
  const Row rows[] = {
      {"layout", args.layout, 2, "sluice_layout"},
      {"weight_layout", args.weight_layout, 2, "sluice_weight_layout"},
      {"activation", args.activation, 8, "sluice_activation"},
      {"regular", args.regular, 2, "0 (REQUIRED) or 1 (OPTIONAL)"},
      {"x.dtype", args.x.dtype, 3, "sluice_dtype"},
  };
  for (const Row& row : rows) {
    if (const Code code = check_enum(row.field, row.value, row.count, row.what, error); code != Code::ok) return code;
  }
  return Code::ok;
}

/// One axis of the window, so that rows and columns share their check.
struct Axis {
  int index;                                 // 0 = h, 1 = w, as in stride, dilation and pad
  std::int64_t in, taps, out, far_pad;       // far_pad: what the output size implies
  std::int64_t stride, dilation, near, far;  // far: what the caller states
  bool conv1d;
};

/// The stated far pad must give exactly the stated output size.
Code check_axis(const Axis& axis, Error& error) {
  const std::int64_t slack = axis.far - axis.far_pad;
  if (slack >= 0 && slack < axis.stride) return Code::ok;
  const int dim = axis.conv1d ? 2 : axis.index + 2;
  const std::int64_t room = axis.in + axis.near + axis.far - (axis.taps - 1) * axis.dilation - 1;
  const std::string from = "x" + at(".dims", dim) + " = " + text(axis.in) + ", w" + at(".dims", dim) + " = " +
                           text(axis.taps) + ", " + at("stride", axis.index) + " = " + text(axis.stride) + ", " +
                           at("dilation", axis.index) + " = " + text(axis.dilation) + ", " + at("pad", axis.index) +
                           " = " + text(axis.near) + ", " + at("pad", axis.index + 2) + " = " + text(axis.far);
  if (room < 0) {
    return refuse(error, "w" + at(".dims", dim) + " = " + text(axis.taps) +
                             ": the kernel does not fit the padded input (" + from + ")");
  }
  return refuse(error, "y" + at(".dims", dim) + " = " + text(axis.out) + ", must be " + text(room / axis.stride + 1) +
                           " for " + from);
}

Code read_window(const sluice_conv2d_args& args, bool conv1d, ConvProblem& problem, Error& error) {
  bool fine = in_range(args.groups, 1);
  for (int i = conv1d ? 1 : 0; i < 2; ++i) {
    fine = fine && in_range(args.stride[i], 1) && in_range(args.dilation[i], 1) && in_range(args.pad[i], 0) &&
           in_range(args.pad[i + 2], -size_limit);
  }
  if (!fine) {  // say which
    if (const Code code = check_range("groups", args.groups, 1, error); code != Code::ok) return code;
    for (int i = conv1d ? 1 : 0; i < 2; ++i) {
      if (const Code code = check_range(at("stride", i), args.stride[i], 1, error); code != Code::ok) return code;
      if (const Code code = check_range(at("dilation", i), args.dilation[i], 1, error); code != Code::ok) return code;
      if (const Code code = check_range(at("pad", i), args.pad[i], 0, error); code != Code::ok) return code;
      if (const Code code = check_range(at("pad", i + 2), args.pad[i + 2], -size_limit, error); code != Code::ok) {
        return code;
      }
    }
  }
  problem.groups = args.groups;
  problem.stride_w = args.stride[1];
  problem.dil_w = args.dilation[1];
  problem.pad_left = args.pad[1];
  if (!conv1d) {
    problem.stride_h = args.stride[0];
    problem.dil_h = args.dilation[0];
    problem.pad_top = args.pad[0];
  }
  return Code::ok;
}

Code check_sizes(const sluice_conv2d_args& args, bool conv1d, const ConvProblem& v, const View& x, const View& w,
                 const View& y, Error& error) {
  if (w.dims[1] * v.groups != v.c) {
    return refuse(error, "w.dims[1] = " + text(w.dims[1]) + " with groups = " + text(v.groups) +
                             ": must be x.dims[1] / groups, and x.dims[1] = " + text(x.dims[1]));
  }
  if (y.dims[0] != v.n) {
    return refuse(error, "y.dims[0] = " + text(y.dims[0]) + ", must be x.dims[0] = " + text(v.n));
  }
  if (y.dims[1] != v.k) {
    return refuse(error, "y.dims[1] = " + text(y.dims[1]) + ", must be w.dims[0] = " + text(v.k));
  }
  if (!conv1d) {
    const Axis rows{0, v.h, v.r, v.p, v.pad_bottom(), v.stride_h, v.dil_h, v.pad_top, args.pad[2], false};
    if (const Code code = check_axis(rows, error); code != Code::ok) return code;
  }
  const Axis columns{1, v.w, v.s, v.q, v.pad_right(), v.stride_w, v.dil_w, v.pad_left, args.pad[3], conv1d};
  return check_axis(columns, error);
}

Code read_bias(const sluice_tensor& bias, std::int32_t dtype, ConvProblem& problem, Error& error) {
  if (bias.ndim == 0 && bias.data == nullptr) return Code::ok;
  if (bias.ndim != 1)
    return refuse(error, "bias.ndim = " + text(bias.ndim) + ", must be 1, or 0 with data NULL for none");
  if (bias.dims == nullptr) return refuse(error, "bias.dims = NULL, must point to 1 dimension");
  if (bias.dtype != dtype && bias.dtype != SLUICE_F32) {
    return refuse(error, "bias.dtype = " + dtype_text(bias.dtype) + ", must be x's (" + dtype_text(dtype) + ") or f32");
  }
  if (bias.dims[0] != problem.k) {
    return refuse(error, "bias.dims[0] = " + text(bias.dims[0]) + ", must be w.dims[0] = " + text(problem.k));
  }
  problem.bias = bias.dtype == dtype ? Bias::same : Bias::f32;
  return Code::ok;
}

Code read_residual(const sluice_tensor& z, const sluice_tensor& y, std::int32_t dtype, View& view, ConvProblem& problem,
                   Error& error) {
  if (z.ndim == 0 && z.data == nullptr) return Code::ok;
  if (const Code code = read_view("z", z, {y.ndim, true}, dtype, view, error); code != Code::ok) return code;
  for (int i = 0; i < z.ndim; ++i) {
    if (z.dims[i] != y.dims[i]) {
      return refuse(
          error, at("z.dims", i) + " = " + text(z.dims[i]) + ", must be " + at("y.dims", i) + " = " + text(y.dims[i]));
    }
  }
  problem.residual = true;
  return Code::ok;
}

}  // namespace

Code read_call(const sluice_conv2d_args& args, Data data, Call& call, Error& error) {
  if (const Code code = check_enums(args, error); code != Code::ok) return code;
  if (args.x.ndim != 3 && args.x.ndim != 4) {
    return refuse(error, "x.ndim = " + text(args.x.ndim) + ", must be 4 (n, c, h, w) or 3 (n, c, w)");
  }
  const std::int32_t ndim = args.x.ndim, dtype = args.x.dtype;
  View x, w, y, z;
  if (const Code code = read_view("x", args.x, {ndim, true}, dtype, x, error); code != Code::ok) return code;
  if (const Code code = read_view("w", args.w, {ndim, false}, dtype, w, error); code != Code::ok) return code;
  if (const Code code = read_view("y", args.y, {ndim, true}, dtype, y, error); code != Code::ok) return code;

  ConvProblem& v = call.problem;
  v.n = x.dims[0], v.c = x.dims[1], v.h = x.dims[2], v.w = x.dims[3];
  v.k = w.dims[0], v.r = w.dims[2], v.s = w.dims[3];
  v.p = y.dims[2], v.q = y.dims[3];
  v.dtype = static_cast<DType>(dtype);
  v.layout = static_cast<Layout>(args.layout);
  v.weight_layout = static_cast<WeightLayout>(args.weight_layout);
  v.activation = static_cast<Activation>(args.activation);
  if (v.activation == Activation::clip) v.alpha = args.alpha, v.beta = args.beta;
  if (v.activation == Activation::leaky_relu) v.alpha = args.alpha;
  if (const Code code = read_window(args, ndim == 3, v, error); code != Code::ok) return code;
  if (const Code code = check_sizes(args, ndim == 3, v, x, w, y, error); code != Code::ok) return code;
  if (const Code code = read_bias(args.bias, dtype, v, error); code != Code::ok) return code;
  if (const Code code = read_residual(args.z, args.y, dtype, z, v, error); code != Code::ok) return code;

  call.tensors = {args.x.data, args.w.data, args.bias.data, args.z.data, args.y.data};
  call.regular = args.regular == 1 ? Regular::yes : Regular::no;
  const bool channels_last = args.layout == SLUICE_NHWC, weight_last = args.weight_layout == SLUICE_OHWI;
  const auto strided = [&call](const char* name, const sluice_tensor& tensor) {
    call.strided = &tensor;
    call.strided_name = name;
  };
  if (v.residual && !packed(z, channels_last)) strided("z", args.z);
  if (v.bias != Bias::none && args.bias.strides != nullptr && v.k > 1 && args.bias.strides[0] != 1) {
    strided("bias", args.bias);
  }
  if (!packed(y, channels_last)) strided("y", args.y);
  if (!packed(w, weight_last)) strided("w", args.w);
  if (!packed(x, channels_last)) strided("x", args.x);
  // A strided view reaches further than its packed size: where it lies is its owner's business, as it is not touched.
  if (call.strided != nullptr) return Code::ok;
  if (const Code code = check_pointers(v, extents(v), call.tensors, data, error); code != Code::ok) return code;
  v.align = alignment_class(call.tensors);
  return Code::ok;
}

}  // namespace sl::capi
