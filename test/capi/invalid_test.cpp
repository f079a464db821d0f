// Every way a call can be wrong, with the field, the value and what would be right in its message.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "capi/call_builder.hpp"

namespace sl::test {
namespace {

struct Case {
  const char* name;
  std::function<void(CallBuilder&)> spoil;
  std::vector<const char*> says;
};

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

const Case cases[] = {
    {"size zero", [](auto& c) { c.args.size = 0; }, {"sluice_conv2d_args.size = 0", "sizeof"}},
    {"x ndim", [](auto& c) { c.args.x.ndim = 5; }, {"x.ndim = 5", "4 (n, c, h, w) or 3"}},
    {"w ndim", [](auto& c) { c.args.w.ndim = 3; }, {"w.ndim = 3", "must be 4"}},
    {"y ndim", [](auto& c) { c.args.y.ndim = 0; }, {"y.ndim = 0", "must be 4"}},
    {"x dims NULL", [](auto& c) { c.args.x.dims = nullptr; }, {"x.dims = NULL"}},
    {"x dtype", [](auto& c) { c.args.x.dtype = 3; }, {"x.dtype = 3", "sluice_dtype"}},
    {"w dtype", [](auto& c) { c.args.w.dtype = SLUICE_F16; }, {"w.dtype = f16", "x.dtype = f32"}},
    {"y dtype", [](auto& c) { c.args.y.dtype = 77; }, {"y.dtype = 77", "x.dtype = f32"}},
    {"layout", [](auto& c) { c.args.layout = 2; }, {"layout = 2", "sluice_layout"}},
    {"weight layout", [](auto& c) { c.args.weight_layout = -1; }, {"weight_layout = -1", "sluice_weight_layout"}},
    {"activation", [](auto& c) { c.args.activation = 8; }, {"activation = 8", "sluice_activation"}},
    {"regular", [](auto& c) { c.args.regular = 2; }, {"regular = 2", "REQUIRED"}},
    {"negative batch", [](auto& c) { c.x_dims[0] = c.y_dims[0] = -1; }, {"x.dims[0] = -1", "must be from 0"}},
    {"no channels", [](auto& c) { c.x_dims[1] = 0; }, {"x.dims[1] = 0", "must be from 1"}},
    {"no outputs", [](auto& c) { c.w_dims[0] = 0; }, {"w.dims[0] = 0", "must be from 1"}},
    {"huge x", [](auto& c) { c.x_dims[2] = huge; }, {"x.dims[2] = 9223372036854775807", "2147483647"}},
    {"groups zero", [](auto& c) { c.args.groups = 0; }, {"groups = 0", "must be from 1"}},
    {"groups of w", [](auto& c) { c.args.groups = 2; }, {"w.dims[1] = 1", "groups = 2", "x.dims[1] = 4"}},
    {"MIOpen#180: c != cpg * groups", [](auto& c) { c.x_dims[1] = 2; }, {"w.dims[1] = 1", "x.dims[1] = 2"}},
    {"batch of y", [](auto& c) { c.y_dims[0] = 3; }, {"y.dims[0] = 3", "x.dims[0] = 2"}},
    {"channels of y", [](auto& c) { c.y_dims[1] = 5; }, {"y.dims[1] = 5", "w.dims[0] = 4"}},
    {"rows of y", [](auto& c) { c.y_dims[2] = 5; }, {"y.dims[2] = 5, must be 6", "x.dims[2] = 6", "pad[2] = 1"}},
    {"columns of y", [](auto& c) { c.y_dims[3] = 7; }, {"y.dims[3] = 7, must be 5", "pad[3] = 1"}},
    {"bottom pad", [](auto& c) { c.args.pad[2] = 2; }, {"y.dims[2] = 6, must be 7", "pad[2] = 2"}},
    {"kernel too large", [](auto& c) { c.args.dilation[0] = 5; }, {"w.dims[2] = 3", "does not fit the padded input"}},
    {"stride zero", [](auto& c) { c.args.stride[0] = 0; }, {"stride[0] = 0", "must be from 1"}},
    {"stride near 2^63", [](auto& c) { c.args.stride[1] = huge; }, {"stride[1] = 9223372036854775807"}},
    {"dilation zero", [](auto& c) { c.args.dilation[1] = 0; }, {"dilation[1] = 0", "must be from 1"}},
    {"negative pad", [](auto& c) { c.args.pad[0] = -1; }, {"pad[0] = -1", "must be from 0"}},
    {"pad near 2^63", [](auto& c) { c.args.pad[3] = huge; }, {"pad[3] = 9223372036854775807"}},
    {"pad that crops the far side",
     [](auto& c) { c.args.pad[0] = 3, c.args.pad[2] = -1; },
     {"pad_bottom", "at least 7"}},
    {"clip bound NaN",
     [](auto& c) { c.args.activation = SLUICE_ACT_CLIP, c.args.beta = NAN; },
     {"beta nan", "numbers"}},
    {"clip bounds", [](auto& c) { c.args.activation = SLUICE_ACT_CLIP, c.args.alpha = 6, c.args.beta = 0; }, {"alpha"}},
    {"x NULL", [](auto& c) { c.args.x.data = nullptr; }, {"x.data = NULL"}},
    {"w NULL", [](auto& c) { c.args.w.data = nullptr; }, {"w.data = NULL"}},
    {"y NULL", [](auto& c) { c.args.y.data = nullptr; }, {"y.data = NULL"}},
    {"x misaligned",
     [](auto& c) { c.args.x.data = static_cast<char*>(c.args.x.data) + 2; },
     {"x.data = 0x", "multiple of its element's 4 bytes"}},
    {"bias ndim",
     [](auto& c) {
       c.use_bias(SLUICE_F32);
       c.args.bias.ndim = 2;
     },
     {"bias.ndim = 2", "must be 1"}},
    {"bias without ndim",
     [](auto& c) {
       c.use_bias(SLUICE_F32);
       c.args.bias.ndim = 0;
     },
     {"bias.ndim = 0", "must be 1"}},
    {"bias dtype", [](auto& c) { c.use_bias(SLUICE_BF16); }, {"bias.dtype = bf16", "x's (f32) or f32"}},
    {"bias dims",
     [](auto& c) {
       c.use_bias(SLUICE_F32);
       c.bias_dims[0] = 3;
     },
     {"bias.dims[0] = 3", "w.dims[0] = 4"}},
    {"bias NULL",
     [](auto& c) {
       c.use_bias(SLUICE_F32);
       c.args.bias.data = nullptr;
     },
     {"bias.data = NULL"}},
    {"z dims",
     [](auto& c) {
       c.use_z();
       c.z_dims[3] = 4;
     },
     {"z.dims[3] = 4", "y.dims[3] = 5"}},
    {"z dtype",
     [](auto& c) {
       c.use_z();
       c.args.z.dtype = SLUICE_F16;
     },
     {"z.dtype = f16"}},
    {"y is x", [](auto& c) { c.args.y.data = c.args.x.data; }, {"y.data", "overlaps x.data", "only z"}},
    {"y ends in w", [](auto& c) { c.args.w.data = static_cast<char*>(c.args.y.data) + 8; }, {"overlaps w.data"}},
    {"z overlaps y by half",
     [](auto& c) {
       c.use_z();
       c.args.z.data = static_cast<char*>(c.args.y.data) + 16;
     },
     {"overlaps z.data", "must be y itself"}},
};

TEST(Invalid, EveryMessageNamesFieldValueAndWhatIsRight) {
  const HostContext context;
  for (const Case& row : cases) {
    SCOPED_TRACE(row.name);
    CallBuilder call;
    row.spoil(call);
    EXPECT_EQ(sluice_conv2d(context, &call.args, nullptr), SLUICE_INVALID);
    const std::string message = sluice_last_error();
    for (const char* part : row.says)
      EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks " << part;
  }
  EXPECT_EQ(context.counters().compiles, 0u);
  EXPECT_EQ(context.counters().launches, 0u);
}

TEST(Invalid, PrepareRefusesTheSameButNullData) {
  const HostContext context;
  for (const Case& row : cases) {
    SCOPED_TRACE(row.name);
    CallBuilder call;
    row.spoil(call);
    const bool null = !call.args.x.data || !call.args.w.data || !call.args.y.data ||
                      (call.args.bias.ndim == 1 && !call.args.bias.data);
    if (null) continue;
    sluice_plan* plan = reinterpret_cast<sluice_plan*>(1);
    EXPECT_EQ(sluice_prepare(context, &call.args, nullptr, &plan), SLUICE_INVALID);
    EXPECT_EQ(plan, nullptr);
    char* json = nullptr;
    EXPECT_EQ(sluice_explain(context, &call.args, 1, &json), SLUICE_INVALID);
    EXPECT_EQ(json, nullptr);
  }
}

TEST(Invalid, NullHandlesAndPointers) {
  const HostContext context;
  CallBuilder call;
  sluice_plan* plan = nullptr;
  char* json = nullptr;
  sluice_counters counters = SLUICE_COUNTERS_INIT;
  const std::pair<sluice_status, const char*> rows[] = {
      {sluice_conv2d(nullptr, &call.args, nullptr), "context"},
      {sluice_conv2d(context, nullptr, nullptr), "args"},
      {sluice_prepare(nullptr, &call.args, nullptr, &plan), "context"},
      {sluice_prepare(context, nullptr, nullptr, &plan), "args"},
      {sluice_prepare(context, &call.args, nullptr, nullptr), "plan"},
      {sluice_plan_run(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), "plan"},
      {sluice_explain(nullptr, &call.args, 1, &json), "context"},
      {sluice_explain(context, &call.args, 1, nullptr), "json"},
      {sluice_explain_text(context, nullptr, 1, &json), "problem"},
      {sluice_explain_text(context, "g4ic4", 1, nullptr), "json"},
      {sluice_get_counters(nullptr, &counters), "context"},
      {sluice_get_counters(context, nullptr), "counters"},
      {sluice_wait_idle(nullptr), "context"},
      {sluice_context_create(nullptr, nullptr), "context"},
  };
  for (const auto& [status, field] : rows) EXPECT_EQ(status, SLUICE_INVALID) << field;
  EXPECT_EQ(sluice_device_supports(nullptr, 80), 0);
  sluice_context_destroy(nullptr);
  sluice_plan_destroy(nullptr);
  sluice_string_free(nullptr);
}

}  // namespace
}  // namespace sl::test
