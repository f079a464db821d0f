// Strided views: packed in the stated layout is taken, anything else is kept or refused, nothing is misread.
#include <gtest/gtest.h>

#include "capi/call_builder.hpp"

namespace sl::test {
namespace {

using Dims = CallBuilder::Dims;

Dims nchw(const Dims& d) { return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}; }
Dims nhwc(const Dims& d) { return {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]}; }

struct Case {
  const char* name;
  void (*change)(CallBuilder&);
  const char* refused;  // the tensor that is named; nullptr = taken
};

const Case cases[] = {
    {"strides stated, nchw",
     [](CallBuilder& c) {
       c.x_strides = nchw(c.x_dims), c.w_strides = nchw(c.w_dims), c.y_strides = nchw(c.y_dims);
       c.args.x.strides = c.x_strides.data(), c.args.w.strides = c.w_strides.data();
       c.args.y.strides = c.y_strides.data();
     },
     nullptr},
    {"strides stated, nhwc",
     [](CallBuilder& c) {
       c.args.layout = SLUICE_NHWC, c.args.weight_layout = SLUICE_OHWI;
       c.x_strides = nhwc(c.x_dims), c.w_strides = nhwc(c.w_dims), c.y_strides = nhwc(c.y_dims);
       c.args.x.strides = c.x_strides.data(), c.args.w.strides = c.w_strides.data();
       c.args.y.strides = c.y_strides.data();
     },
     nullptr},
    {"channels last, but nchw stated",
     [](CallBuilder& c) {
       c.x_strides = nhwc(c.x_dims);
       c.args.x.strides = c.x_strides.data();
     },
     "x"},
    {"a dimension of size 1 has any stride",
     [](CallBuilder& c) {
       c.w_strides = nchw(c.w_dims);
       c.w_strides[1] = -12345;  // one channel a group
       c.args.w.strides = c.w_strides.data();
     },
     nullptr},
    {"pytorch#24090: NC11 fits both layouts",
     [](CallBuilder& c) {
       c.x_dims = {2, 4, 1, 1}, c.y_dims = {2, 4, 1, 1}, c.w_dims = {4, 1, 1, 1};
       c.args.pad[0] = c.args.pad[1] = c.args.pad[2] = c.args.pad[3] = 0;
       c.x_strides = {4, 1, 4, 4}, c.y_strides = {4, 1, 1, 1};
       c.args.x.strides = c.x_strides.data(), c.args.y.strides = c.y_strides.data();
     },
     nullptr},
    {"pytorch#180984: sliced channels",
     [](CallBuilder& c) {
       c.x_strides = nchw({2, 8, 6, 5});
       c.args.x.strides = c.x_strides.data();
     },
     "x"},
    {"pytorch#15297: expanded weights, stride 0",
     [](CallBuilder& c) {
       c.w_strides = {0, 9, 3, 1};
       c.args.w.strides = c.w_strides.data();
     },
     "w"},
    {"pytorch#1246: every second weight",
     [](CallBuilder& c) {
       c.w_strides = {36, 36, 12, 2};
       c.args.w.strides = c.w_strides.data();
     },
     "w"},
    {"cutlass#1323: padded output rows",
     [](CallBuilder& c) {
       c.y_strides = {4 * 6 * 8, 6 * 8, 8, 1};
       c.args.y.strides = c.y_strides.data();
     },
     "y"},
    {"negative strides",
     [](CallBuilder& c) {
       c.x_strides = nchw(c.x_dims);
       c.x_strides[3] = -1;
       c.args.x.strides = c.x_strides.data();
     },
     "x"},
    {"residual in another layout",
     [](CallBuilder& c) {
       c.use_z();
       c.z_strides = nhwc(c.z_dims);
       c.args.z.strides = c.z_strides.data();
     },
     "z"},
    {"strided bias",
     [](CallBuilder& c) {
       c.use_bias(SLUICE_F32);
       c.bias_strides[0] = 2;
       c.args.bias.strides = c.bias_strides.data();
     },
     "bias"},
    {"packed bias",
     [](CallBuilder& c) {
       c.use_bias(SLUICE_F32);
       c.bias_strides[0] = 1;
       c.args.bias.strides = c.bias_strides.data();
     },
     nullptr},
    {"conv1d, ncw",
     [](CallBuilder& c) {
       c.conv1d();
       c.x_strides = {20, 5, 1, 0};
       c.args.x.strides = c.x_strides.data();
     },
     nullptr},
    {"conv1d, nwc",
     [](CallBuilder& c) {
       c.conv1d();
       c.args.layout = SLUICE_NHWC;
       c.x_strides = {20, 1, 4, 0};
       c.args.x.strides = c.x_strides.data();
     },
     nullptr},
    {"conv1d, nwc, but nchw stated",
     [](CallBuilder& c) {
       c.conv1d();
       c.x_strides = {20, 1, 4, 0};
       c.args.x.strides = c.x_strides.data();
     },
     "x"},
};

TEST(Views, PackedIsTakenAndTheRestIsKeptOrRefused) {
  const HostContext context;
  for (const Case& row : cases) {
    SCOPED_TRACE(row.name);
    CallBuilder call;
    row.change(call);
    const std::string record = explained(context, call.args);
    if (row.refused == nullptr) {
      EXPECT_EQ(record.find("strided view"), std::string::npos) << record;
      continue;
    }
    const std::string field = std::string(row.refused) + ".strides";
    EXPECT_NE(record.find("strided view"), std::string::npos) << record;
    EXPECT_NE(record.find(field + " = {"), std::string::npos) << record;
    EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_KEPT);
    EXPECT_NE(std::string(sluice_last_error()).find(field), std::string::npos) << sluice_last_error();
    sluice_plan* plan = nullptr;
    EXPECT_EQ(sluice_prepare(context, &call.args, nullptr, &plan), SLUICE_KEPT);
    call.args.regular = 0;
    EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_UNSUPPORTED);
    const std::string message = sluice_last_error();
    EXPECT_NE(message.find(field), std::string::npos) << message;
    EXPECT_NE(message.find("REQUIRED call g4"), std::string::npos) << message;
  }
}

TEST(Views, AnEmptyTensorHasAnyStrides) {
  const HostContext context;
  CallBuilder call;
  call.x_dims[0] = call.y_dims[0] = 0;
  call.x_strides = {9, 9, 9, 9};
  call.args.x.strides = call.x_strides.data();
  call.args.x.data = call.args.w.data = call.args.y.data = nullptr;
  EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_OK) << sluice_last_error();
  EXPECT_EQ(context.counters().launches, 0u);
}

}  // namespace
}  // namespace sl::test
