// The short way to a key against the long one: what it takes, the long one takes, with the same key; or no table has
// the key. And it takes what callers send, or nobody would be fast.
#include "capi/plain_call.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <limits>

#include "capi/call.hpp"
#include "capi/call_builder.hpp"
#include "support/generators.hpp"

namespace sl::capi {
namespace {

using test::CallBuilder;

/// The problem that a key speaks of, legal or not. As a legal problem's key gives that problem, a key that gives an
/// illegal one is no legal problem's.
ConvProblem unpacked(const PlanTable::Key& key) {
  const auto high = [&](std::size_t i) { return static_cast<std::int64_t>(static_cast<std::uint64_t>(key[i]) >> 32); };
  const auto low = [&](std::size_t i) { return key[i] & 0xffffffff; };
  const auto kind = [&](int shift, int width) { return (low(5) >> shift) & ((1 << width) - 1); };
  ConvProblem v;
  v.n = key[0], v.c = high(1), v.k = low(1), v.h = high(2), v.w = low(2), v.p = high(3), v.q = low(3), v.r = high(4);
  v.s = low(4), v.groups = high(5), v.stride_h = high(6), v.stride_w = low(6), v.pad_top = high(7), v.pad_left = low(7);
  v.dil_h = high(8), v.dil_w = low(8);
  v.dtype = static_cast<DType>(kind(0, 4)), v.layout = static_cast<Layout>(kind(4, 4));
  v.weight_layout = static_cast<WeightLayout>(kind(8, 4)), v.bias = static_cast<Bias>(kind(12, 4));
  v.activation = static_cast<Activation>(kind(16, 4)), v.residual = kind(20, 4) != 0;
  v.align = static_cast<std::int32_t>(kind(26, 5));
  v.alpha = std::bit_cast<float>(static_cast<std::uint32_t>(high(9)));
  v.beta = std::bit_cast<float>(static_cast<std::uint32_t>(low(9)));
  return v;
}

Regular regular_of(const PlanTable::Key& key) { return ((key[5] >> 24) & 1) != 0 ? Regular::no : Regular::yes; }

testing::AssertionResult agrees(const sluice_conv2d_args& args) {
  PlainCall plain;
  if (!read_plain(args, plain)) return testing::AssertionSuccess() << "not plain";
  const ConvProblem meant = unpacked(plain.key);
  Call call;
  Error error;
  if (read_call(args, Data::needed, call, error) != Code::ok) {
    // Then there must be no entry with this key, or one that the extents refuse.
    if (meant.empty() || !validate(meant).ok()) return testing::AssertionSuccess();
    if (!y_is_apart(extents(meant), plain.tensors)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "taken as " << meant.to_string() << ", but: " << error.message;
  }
  if (call.strided != nullptr) return testing::AssertionFailure() << call.strided_name << " is strided";
  if (plan_key(call.problem, call.regular) != plain.key) {
    return testing::AssertionFailure() << "read as " << meant.to_string() << ", is " << call.problem.to_string();
  }
  const Tensors &a = call.tensors, &b = plain.tensors;
  if (a.x != b.x || a.w != b.w || a.bias != b.bias || a.z != b.z || a.y != b.y) {
    return testing::AssertionFailure() << "other pointers";
  }
  return testing::AssertionSuccess();
}

/// Packed strides of all tensors, so that callers who state them are met too.
void state_strides(CallBuilder& call, const ConvProblem& v) {
  const auto of = [](const CallBuilder::Dims& d, bool last) {
    return last ? CallBuilder::Dims{d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]}
                : CallBuilder::Dims{d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
  };
  const bool last = v.layout == Layout::nhwc;
  call.x_strides = of(call.x_dims, last), call.y_strides = call.z_strides = of(call.y_dims, last);
  call.w_strides = of(call.w_dims, v.weight_layout == WeightLayout::ohwi);
  call.bias_strides = {1, 0, 0, 0};
  call.args.x.strides = call.x_strides.data(), call.args.y.strides = call.y_strides.data();
  call.args.w.strides = call.w_strides.data();
  if (call.args.z.data != nullptr) call.args.z.strides = call.z_strides.data();
  if (call.args.bias.data != nullptr) call.args.bias.strides = call.bias_strides.data();
}

RC_GTEST_PROP(PlanKey, SaysAllOfALegalProblem, ()) {
  const ConvProblem problem = *rc::gen::arbitrary<ConvProblem>();
  for (const Regular regular : {Regular::yes, Regular::no}) {
    const PlanTable::Key key = plan_key(problem, regular);
    RC_ASSERT(unpacked(key) == problem);
    RC_ASSERT(regular_of(key) == regular);
  }
}

RC_GTEST_PROP(PlainCall, EveryLegalCallIsPlain, ()) {
  const ConvProblem problem = *rc::gen::arbitrary<ConvProblem>();
  RC_PRE(!problem.empty());
  CallBuilder call(problem, 1);
  if (*rc::gen::arbitrary<bool>()) state_strides(call, problem);
  PlainCall plain;
  RC_ASSERT(read_plain(call.args, plain));
  RC_ASSERT(agrees(call.args));
}

TEST(PlainCall, Conv1dIsPlain) {
  ConvProblem problem;
  problem.n = 2, problem.c = problem.k = problem.groups = 4, problem.w = problem.q = 5, problem.s = 3;
  problem.pad_left = 1;
  CallBuilder call(problem, 1);
  call.conv1d();
  call.args.stride[0] = call.args.dilation[0] = call.args.pad[0] = call.args.pad[2] = -99;  // do not count
  PlainCall plain;
  EXPECT_TRUE(read_plain(call.args, plain));
  EXPECT_TRUE(agrees(call.args));
}

/// One field set to something else, mostly wrong.
template <class T>
void disturb(T& field) {
  constexpr std::int64_t near = std::int64_t{1} << 31;
  const auto old = static_cast<std::uint64_t>(field);  // a field disturbed twice may hold an end of the range
  const auto from_old = [&](std::uint64_t factor, std::uint64_t more) {
    return static_cast<std::int64_t>(old * factor + more);
  };
  field = static_cast<T>(*rc::gen::element<std::int64_t>(
      0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -2, from_old(1, 1), from_old(1, ~0ULL), from_old(~0ULL, 0), from_old(2, 0),
      from_old(1, 2 * near), from_old(1, 256), near - 1, near, -near, 2 * near, 2 * near + 1,
      std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()));
}

void disturb(sluice_tensor& tensor, CallBuilder::Dims& dims, CallBuilder::Dims& strides) {
  switch (*rc::gen::inRange(0, 6)) {
    case 0:
      return disturb(tensor.dtype);
    case 1:
      return disturb(tensor.ndim);
    case 2:
      tensor.dims = nullptr;
      return;
    case 3:
      if (const auto off = *rc::gen::element<std::uintptr_t>(0, 1, 2, 4); off == 0) {
        tensor.data = nullptr;
      } else {  // as numbers: it may be null already
        tensor.data = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(tensor.data) + off);
      }
      return;
    case 4:
      return disturb(dims[*rc::gen::inRange<std::size_t>(0, 4)]);
    default:
      tensor.strides = strides.data();
      return disturb(strides[*rc::gen::inRange<std::size_t>(0, 4)]);
  }
}

void disturb(CallBuilder& call) {
  sluice_conv2d_args& a = call.args;
  switch (*rc::gen::inRange(0, 16)) {
    case 0:
      return disturb(a.size);
    case 1:
      return disturb(a.layout);
    case 2:
      return disturb(a.weight_layout);
    case 3:
      return disturb(a.groups);
    case 4:
      return disturb(a.stride[*rc::gen::inRange(0, 2)]);
    case 5:
    case 6:
      return disturb(a.pad[*rc::gen::inRange(0, 4)]);
    case 7:
      return disturb(a.dilation[*rc::gen::inRange(0, 2)]);
    case 8:
      return disturb(a.activation);
    case 9:
      return disturb(a.regular);
    case 10:
    case 11:
      return disturb(a.x, call.x_dims, call.x_strides);
    case 12:
      return disturb(a.w, call.w_dims, call.w_strides);
    case 13:
      return disturb(a.y, call.y_dims, call.y_strides);
    case 14:
      return disturb(a.bias, call.bias_dims, call.bias_strides);
    default:
      return disturb(a.z, call.z_dims, call.z_strides);
  }
}

RC_GTEST_PROP(PlainCall, WhatIsNotPlainIsLeftToTheLongWay, ()) {
  const ConvProblem problem = *rc::gen::arbitrary<ConvProblem>();
  CallBuilder call(problem, 1);
  if (*rc::gen::arbitrary<bool>()) state_strides(call, problem);
  const std::size_t size = call.args.size;
  const int times = *rc::gen::inRange(1, 4);
  for (int i = 0; i < times; ++i) disturb(call);
  PlainCall plain;
  if (call.args.size != size) {
    RC_ASSERT(!read_plain(call.args, plain));  // and read_call() is for the size that the library knows
  } else {
    RC_ASSERT(agrees(call.args));
  }
}

TEST(PlainCall, AnOverlapIsLeftToTheExtents) {
  CallBuilder call;
  call.args.y.data = static_cast<char*>(call.args.x.data) + 16;
  PlainCall plain;
  ASSERT_TRUE(read_plain(call.args, plain));
  EXPECT_FALSE(y_is_apart(extents(unpacked(plain.key)), plain.tensors));
}

}  // namespace
}  // namespace sl::capi
