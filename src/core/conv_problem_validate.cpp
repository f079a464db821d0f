// The rules of a legal ConvProblem, each a table row or a function of a few lines. No arithmetic is done on a field
// before its range is known.
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <optional>

#include "core/conv_problem.hpp"

namespace sl {
namespace {

constexpr std::int64_t size_limit = std::int64_t{1} << 31;
constexpr std::int64_t batch_limit = std::int64_t{1} << 40;
constexpr std::int64_t product_limit = std::int64_t{1} << 62;

struct Range {
  const char* name;  // with the descriptor's token
  std::int64_t ConvProblem::*field;
  std::int64_t least, limit;
};

constexpr Range batch_and_channels[] = {
    {"n (mb)", &ConvProblem::n, 0, batch_limit},
    {"c (ic)", &ConvProblem::c, 1, size_limit},
    {"k (oc)", &ConvProblem::k, 1, size_limit},
    {"groups (g)", &ConvProblem::groups, 1, size_limit},
};
constexpr Range input_and_window[] = {
    {"h (ih)", &ConvProblem::h, 1, size_limit},
    {"w (iw)", &ConvProblem::w, 1, size_limit},
    {"r (kh)", &ConvProblem::r, 1, size_limit},
    {"s (kw)", &ConvProblem::s, 1, size_limit},
    {"stride_h (sh)", &ConvProblem::stride_h, 1, size_limit},
    {"stride_w (sw)", &ConvProblem::stride_w, 1, size_limit},
    {"dil_h (dh + 1)", &ConvProblem::dil_h, 1, size_limit},
    {"dil_w (dw + 1)", &ConvProblem::dil_w, 1, size_limit},
    {"pad_top (ph)", &ConvProblem::pad_top, 0, size_limit},
    {"pad_left (pw)", &ConvProblem::pad_left, 0, size_limit},
};
constexpr Range output[] = {
    {"p (oh)", &ConvProblem::p, 1, size_limit},
    {"q (ow)", &ConvProblem::q, 1, size_limit},
};

std::string text(std::int64_t value) { return std::to_string(value); }

Error invalid(const ConvProblem& problem, const std::string& what) {
  return {Code::invalid, what + " [" + problem.to_string() + "]"};
}

template <std::size_t N>
Status check_ranges(const ConvProblem& problem, const Range (&ranges)[N]) {
  for (const Range& range : ranges) {
    const std::int64_t value = problem.*range.field;
    if (value < range.least || value >= range.limit) {
      return invalid(problem, std::string(range.name) + " is " + text(value) + ", must be from " + text(range.least) +
                                  " to " + text(range.limit - 1));
    }
  }
  return {};
}

Status check_enumerators(const ConvProblem& v) {
  struct Row {
    const char* field;
    bool known;
    int value;
  };
  const Row rows[] = {
      {"dtype", v.dtype <= DType::bf16, static_cast<int>(v.dtype)},
      {"layout", v.layout <= Layout::nhwc, static_cast<int>(v.layout)},
      {"weight_layout", v.weight_layout <= WeightLayout::ohwi, static_cast<int>(v.weight_layout)},
      {"bias", v.bias <= Bias::f32, static_cast<int>(v.bias)},
      {"activation", v.activation <= Activation::leaky_relu, static_cast<int>(v.activation)},
  };
  for (const Row& row : rows) {
    if (!row.known)
      return invalid(v, std::string(row.field) + " is " + text(row.value) + ", not one of the known ones");
  }
  return {};
}

Status check_groups(const ConvProblem& v) {
  if (v.c % v.groups != 0) {
    return invalid(v, "groups (g) is " + text(v.groups) + ", must divide c (ic), which is " + text(v.c));
  }
  if (v.k % v.groups != 0) {
    return invalid(v, "groups (g) is " + text(v.groups) + ", must divide k (oc), which is " + text(v.k));
  }
  return {};
}

// One axis with its names, so that rows and columns share their rules.
struct Axis {
  const char *out_name, *pad_name, *far_pad_name;
  std::int64_t in, out, taps, stride, dilation, pad;
  std::int64_t effective() const { return (taps - 1) * dilation + 1; }
  std::int64_t extent() const { return (out - 1) * stride + effective(); }
  std::int64_t far_pad() const { return extent() - in - pad; }
};

Axis rows(const ConvProblem& v) {
  return {"p (oh)", "pad_top (ph)", "pad_bottom", v.h, v.p, v.r, v.stride_h, v.dil_h, v.pad_top};
}
Axis columns(const ConvProblem& v) {
  return {"q (ow)", "pad_left (pw)", "pad_right", v.w, v.q, v.s, v.stride_w, v.dil_w, v.pad_left};
}

// Fields below 2^31 each: no product or sum here leaves int64.
Status check_axis(const ConvProblem& v, const Axis& axis) {
  const std::int64_t effective = axis.effective();
  if (axis.extent() >= size_limit) {
    return invalid(v, std::string(axis.out_name) + " is " + text(axis.out) + ", stride " + text(axis.stride) +
                          ", effective kernel " + text(effective) + ": the padded input would be " +
                          text(axis.extent()) + ", must be below " + text(size_limit));
  }
  if (axis.in + axis.pad >= size_limit) {
    return invalid(v, std::string(axis.pad_name) + " is " + text(axis.pad) + ": with an input of " + text(axis.in) +
                          " the padded input would be " + text(axis.in + axis.pad) + ", must be below " +
                          text(size_limit));
  }
  if (axis.far_pad() <= -axis.stride) {  // so that the padded input holds the kernel: a far pad of 0 leaves outputs
    const std::int64_t least = (axis.in + axis.pad - effective) / axis.stride + 1;
    return invalid(v, std::string(axis.out_name) + " is " + text(axis.out) + ", which makes " + axis.far_pad_name +
                          " " + text(axis.far_pad()) + "; the output must be at least " + text(least) + " for input " +
                          text(axis.in) + ", near pad " + text(axis.pad) + ", stride " + text(axis.stride) +
                          ", effective kernel " + text(effective));
  }
  return {};
}

std::optional<std::int64_t> product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return std::nullopt;
  }
  return result;
}

// Each tensor's bytes are held below an eighth of the limit, so that their sum cannot pass it.
Status check_products(const ConvProblem& v) {
  struct Row {
    const char* what;
    std::optional<std::int64_t> value;
    std::int64_t limit;
  };
  const Row table[] = {
      {"x: n * c * h * w elements", product({v.n, v.c, v.h, v.w}), product_limit / 32},
      {"w: k * c / groups * r * s elements", product({v.k, v.channels_per_group(), v.r, v.s}), product_limit / 32},
      {"y: n * k * p * q elements", product({v.n, v.k, v.p, v.q}), product_limit / 32},
      {"multiply-adds: n * k * p * q * c / groups * r * s",
       product({v.n, v.k, v.p, v.q, v.channels_per_group(), v.r, v.s}), product_limit},
  };
  for (const Row& row : table) {
    if (!row.value || *row.value >= row.limit) {
      return invalid(v, std::string(row.what) + " is " + (row.value ? text(*row.value) : "beyond 64 bits") +
                            ", must be below " + text(row.limit));
    }
  }
  return {};
}

Status check_align(const ConvProblem& v) {
  const bool known = v.align == 2 || v.align == 4 || v.align == 8 || v.align == 16;
  if (!known || static_cast<std::size_t>(v.align) < size_of(v.dtype)) {
    return invalid(v, "align is " + text(v.align) + ", must be " +
                          (size_of(v.dtype) == 4 ? "4, 8 or 16" : "2, 4, 8 or 16") + " for " +
                          std::string(name(v.dtype)));
  }
  return {};
}

Status check_activation(const ConvProblem& v) {
  const bool uses_beta = v.activation == Activation::clip;
  const bool uses_alpha = uses_beta || v.activation == Activation::leaky_relu;
  const std::string act = "activation " + std::string(name(v.activation));
  const auto number = [](float value) {
    char digits[32];
    return std::string(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  };
  if (uses_beta && (std::isnan(v.alpha) || std::isnan(v.beta))) {
    return invalid(v, "alpha is " + number(v.alpha) + " and beta " + number(v.beta) + ", must be numbers for clip");
  }
  if (!uses_beta && !std::isfinite(v.alpha)) return invalid(v, "alpha is " + number(v.alpha) + ", must be finite");
  if (!uses_beta && !std::isfinite(v.beta)) return invalid(v, "beta is " + number(v.beta) + ", must be finite");
  if (!uses_alpha && v.alpha != 0.0F) {
    return invalid(v, "alpha is " + number(v.alpha) + ", must be 0: " + act + " does not use it (clip, leaky_relu do)");
  }
  if (!uses_beta && v.beta != 0.0F) {
    return invalid(v, "beta is " + number(v.beta) + ", must be 0: " + act + " does not use it (clip does)");
  }
  if (uses_beta && v.alpha > v.beta) {
    return invalid(v,
                   "alpha is " + number(v.alpha) + ", must be at most beta, which is " + number(v.beta) + ", for clip");
  }
  return {};
}

// Largest p for which every window lies in the padded input; the quotient rounds down, also below 0.
Result<std::int64_t> output_size(const ConvProblem& v, const Axis& axis, std::int64_t far_pad) {
  if (far_pad <= -size_limit || far_pad >= size_limit) {
    return invalid(v, std::string(axis.far_pad_name) + " is " + text(far_pad) + ", must be below " + text(size_limit) +
                          " in magnitude");
  }
  const std::int64_t padded = axis.in + axis.pad + far_pad;
  if (axis.effective() > padded) {
    return invalid(v, std::string("the effective kernel, ") + text(axis.effective()) + " (" + text(axis.taps) +
                          " taps, dilation " + text(axis.dilation) + "), is larger than the padded input, " +
                          text(padded) + " (" + text(axis.in) + " with " + axis.pad_name + " " + text(axis.pad) +
                          " and " + axis.far_pad_name + " " + text(far_pad) + "): no output fits");
  }
  return (padded - axis.effective()) / axis.stride + 1;
}

}  // namespace

Status validate(const ConvProblem& v) {
  SL_TRY(check_enumerators(v));
  SL_TRY(check_ranges(v, batch_and_channels));
  SL_TRY(check_ranges(v, input_and_window));
  SL_TRY(check_ranges(v, output));
  SL_TRY(check_groups(v));
  SL_TRY(check_axis(v, rows(v)));
  SL_TRY(check_axis(v, columns(v)));
  SL_TRY(check_products(v));
  SL_TRY(check_align(v));
  return check_activation(v);
}

Result<ConvProblem> validated(const ConvProblem& problem) {
  SL_TRY(validate(problem));
  return problem.normalised();
}

Result<ConvProblem> with_output_size(ConvProblem v, std::int64_t pad_bottom, std::int64_t pad_right) {
  SL_TRY(check_ranges(v, input_and_window));
  SL_ASSIGN(const std::int64_t p, output_size(v, rows(v), pad_bottom));
  SL_ASSIGN(const std::int64_t q, output_size(v, columns(v), pad_right));
  v.p = p;
  v.q = q;
  return v;
}

}  // namespace sl
