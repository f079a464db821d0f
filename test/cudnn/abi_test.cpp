// abi.hpp against cuDNN's own header, and graphs against cuDNN itself, where there is one: plans for a described GPU
// need none.
#include <gtest/gtest.h>

#if __has_include(<cudnn_graph.h>) && __has_include(<cuda_runtime.h>)
#include <cudnn_graph.h>
#define HAS_CUDNN_HEADER
#endif

#include "tuner/cudnn/plan.hpp"

namespace sl::cudnn::test {
namespace {

TEST(CudnnAbi, NumbersAreTheHeaders) {
#ifdef HAS_CUDNN_HEADER
  const struct {
    int ours, theirs;
  } numbers[] = {
      {static_cast<int>(Kind::pointwise), CUDNN_BACKEND_POINTWISE_DESCRIPTOR},
      {static_cast<int>(Kind::convolution), CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR},
      {static_cast<int>(Kind::engine), CUDNN_BACKEND_ENGINE_DESCRIPTOR},
      {static_cast<int>(Kind::engine_config), CUDNN_BACKEND_ENGINECFG_DESCRIPTOR},
      {static_cast<int>(Kind::heuristic), CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR},
      {static_cast<int>(Kind::plan), CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR},
      {static_cast<int>(Kind::knob_choice), CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR},
      {static_cast<int>(Kind::operation_convolution), CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR},
      {static_cast<int>(Kind::operation_pointwise), CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR},
      {static_cast<int>(Kind::operation_graph), CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR},
      {static_cast<int>(Kind::variant_pack), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR},
      {static_cast<int>(Kind::tensor), CUDNN_BACKEND_TENSOR_DESCRIPTOR},
#define SAME(ours, theirs) {static_cast<int>(Attribute::ours), CUDNN_ATTR_##theirs},
      SAME(pointwise_mode, POINTWISE_MODE) SAME(pointwise_precision, POINTWISE_MATH_PREC) SAME(
          pointwise_lower_clip, POINTWISE_RELU_LOWER_CLIP) SAME(pointwise_upper_clip, POINTWISE_RELU_UPPER_CLIP)
          SAME(pointwise_lower_slope, POINTWISE_RELU_LOWER_CLIP_SLOPE) SAME(
              pointwise_swish_beta, POINTWISE_SWISH_BETA) SAME(convolution_compute_type, CONVOLUTION_COMP_TYPE)
              SAME(convolution_mode, CONVOLUTION_CONV_MODE) SAME(convolution_dilations, CONVOLUTION_DILATIONS) SAME(
                  convolution_strides,
                  CONVOLUTION_FILTER_STRIDES) SAME(convolution_post_paddings,
                                                   CONVOLUTION_POST_PADDINGS) SAME(convolution_pre_paddings,
                                                                                   CONVOLUTION_PRE_PADDINGS)
                  SAME(convolution_spatial_dims, CONVOLUTION_SPATIAL_DIMS) SAME(heuristic_mode, ENGINEHEUR_MODE) SAME(
                      heuristic_graph, ENGINEHEUR_OPERATION_GRAPH) SAME(heuristic_results, ENGINEHEUR_RESULTS)
                      SAME(config_engine, ENGINECFG_ENGINE) SAME(config_knobs, ENGINECFG_KNOB_CHOICES) SAME(
                          plan_config, EXECUTION_PLAN_ENGINE_CONFIG) SAME(plan_workspace, EXECUTION_PLAN_WORKSPACE_SIZE)
                          SAME(knob_type, KNOB_CHOICE_KNOB_TYPE) SAME(knob_value, KNOB_CHOICE_KNOB_VALUE)
                              SAME(forward_alpha, OPERATION_CONVOLUTION_FORWARD_ALPHA) SAME(
                                  forward_beta, OPERATION_CONVOLUTION_FORWARD_BETA)
                                  SAME(forward_convolution, OPERATION_CONVOLUTION_FORWARD_CONV_DESC) SAME(
                                      forward_w, OPERATION_CONVOLUTION_FORWARD_W) SAME(forward_x,
                                                                                       OPERATION_CONVOLUTION_FORWARD_X)
                                      SAME(forward_y, OPERATION_CONVOLUTION_FORWARD_Y) SAME(
                                          operation_pointwise, OPERATION_POINTWISE_PW_DESCRIPTOR)
                                          SAME(operation_pointwise_x, OPERATION_POINTWISE_XDESC) SAME(
                                              operation_pointwise_b, OPERATION_POINTWISE_BDESC)
                                              SAME(operation_pointwise_y, OPERATION_POINTWISE_YDESC) SAME(
                                                  graph_operations, OPERATIONGRAPH_OPS)
                                                  SAME(graph_engine_count, OPERATIONGRAPH_ENGINE_GLOBAL_COUNT) SAME(
                                                      tensor_alignment, TENSOR_BYTE_ALIGNMENT) SAME(tensor_type,
                                                                                                    TENSOR_DATA_TYPE)
                                                      SAME(tensor_dims, TENSOR_DIMENSIONS) SAME(tensor_strides,
                                                                                                TENSOR_STRIDES)
                                                          SAME(tensor_uid, TENSOR_UNIQUE_ID)
                                                              SAME(tensor_virtual, TENSOR_IS_VIRTUAL)
                                                                  SAME(pack_uids, VARIANT_PACK_UNIQUE_IDS) SAME(
                                                                      pack_pointers, VARIANT_PACK_DATA_POINTERS)
                                                                      SAME(pack_workspace, VARIANT_PACK_WORKSPACE) SAME(
                                                                          engine_graph, ENGINE_OPERATION_GRAPH)
                                                                          SAME(engine_index, ENGINE_GLOBAL_INDEX)
                                                                              SAME(engine_notes, ENGINE_NUMERICAL_NOTE)
#undef SAME
                                                                                  {static_cast<int>(Type::handle),
                                                                                   CUDNN_TYPE_HANDLE},
      {static_cast<int>(Type::data_type), CUDNN_TYPE_DATA_TYPE},
      {static_cast<int>(Type::boolean), CUDNN_TYPE_BOOLEAN},
      {static_cast<int>(Type::int64), CUDNN_TYPE_INT64},
      {static_cast<int>(Type::float32), CUDNN_TYPE_FLOAT},
      {static_cast<int>(Type::float64), CUDNN_TYPE_DOUBLE},
      {static_cast<int>(Type::pointer), CUDNN_TYPE_VOID_PTR},
      {static_cast<int>(Type::convolution_mode), CUDNN_TYPE_CONVOLUTION_MODE},
      {static_cast<int>(Type::heuristic_mode), CUDNN_TYPE_HEUR_MODE},
      {static_cast<int>(Type::knob_type), CUDNN_TYPE_KNOB_TYPE},
      {static_cast<int>(Type::numerical_note), CUDNN_TYPE_NUMERICAL_NOTE},
      {static_cast<int>(Type::pointwise_mode), CUDNN_TYPE_POINTWISE_MODE},
      {static_cast<int>(Type::descriptor), CUDNN_TYPE_BACKEND_DESCRIPTOR},
      {static_cast<int>(Data::f32), CUDNN_DATA_FLOAT},
      {static_cast<int>(Data::f16), CUDNN_DATA_HALF},
      {static_cast<int>(Data::bf16), CUDNN_DATA_BFLOAT16},
      {static_cast<int>(Pointwise::add), CUDNN_POINTWISE_ADD},
      {static_cast<int>(Pointwise::relu), CUDNN_POINTWISE_RELU_FWD},
      {static_cast<int>(Pointwise::gelu_erf), CUDNN_POINTWISE_GELU_FWD},
      {static_cast<int>(Pointwise::swish), CUDNN_POINTWISE_SWISH_FWD},
      {static_cast<int>(Pointwise::gelu_tanh), CUDNN_POINTWISE_GELU_APPROX_TANH_FWD},
      {static_cast<int>(HeuristicMode::instant), CUDNN_HEUR_MODE_INSTANT},
      {static_cast<int>(HeuristicMode::b), CUDNN_HEUR_MODE_B},
      {static_cast<int>(HeuristicMode::fallback), CUDNN_HEUR_MODE_FALLBACK},
      {static_cast<int>(HeuristicMode::a), CUDNN_HEUR_MODE_A},
      {cross_correlation, CUDNN_CROSS_CORRELATION},
      {note_tensor_core, CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
      {note_down_convert, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS},
      {note_winograd, CUDNN_NUMERICAL_NOTE_WINOGRAD},
      {status_success, CUDNN_STATUS_SUCCESS},
      {status_not_supported, CUDNN_STATUS_NOT_SUPPORTED},
  };
  for (const auto& number : numbers) EXPECT_EQ(number.ours, number.theirs);
  static_assert(sizeof(Status_t) == sizeof(cudnnStatus_t) && sizeof(Handle_t) == sizeof(cudnnHandle_t));
#else
  GTEST_SKIP() << "no <cudnn_graph.h>: install cuDNN's headers to check against them";
#endif
}

/// An H200 in the form that cuDNN writes a device in.
constexpr char h200[] =
    R"({"deviceName": "NVIDIA H200", "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
        "deviceVer": 900, "driverVer": 13000, "regsPerBlock": 65536, "multiProcessorCount": 132, "smClockRateKHz": 1980000,
        "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
        "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
        "pciDeviceId": 0, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0,
        "supportCoopLaunch": 1, "cudaDeviceId": 0, "totalGlobalMem": 150000000000})";

Result<Descriptor> describe_h200(const Library& library) {
  SL_ASSIGN(Descriptor device, Descriptor::make(library, Kind::device_properties));
  SL_TRY(device.set(Attribute::device_json, Type::character, sizeof h200, h200));
  SL_TRY(device.finalize());
  return device;
}

// cuDNN 9.8 and newer make plans for a GPU that is not here. What is checked is that it takes our graphs, and names
// engines for them.
TEST(Cudnn, TakesOurGraphsForADescribedGpu) {
#ifdef FAKE_CUDNN_ONLY
  GTEST_SKIP() << "not under sanitizers";
#endif
  const auto library = load_library("", {});
  if (!library.ok()) GTEST_SKIP() << library.error().message;
  if ((*library)->version < 90800) GTEST_SKIP() << "cuDNN " << (*library)->version_text() << " knows no described GPU";
  const auto device = describe_h200(**library);
  ASSERT_TRUE(device.ok()) << device.error().message;
  const Context context{library->get(), nullptr, &*device};
  for (const char* const text : {
           "g144mb32ic144ih56oc144oh56kh3ph1 dt=f16 tag=nhwc",
           "g144mb32ic144ih56oc144oh56kh3ph1 dt=f32 tag=nchw",
           "g144mb1ic144ih56oc144oh28kh5sh2ph2 dt=bf16 tag=nchw",
           "g32mb1ic128ih56oc128oh56kh3ph1 dt=f16 tag=nhwc",
           "g144mb32ic144ih56oc144oh28kh3sh2ph0 dt=f16 tag=nhwc",
       }) {
    const ConvProblem problem = parse(text).value();
    const auto graph = build_graph(context, problem);
    ASSERT_TRUE(graph.ok()) << text << ": " << graph.error().message;
    const auto named = choices(context, *graph, false);
    ASSERT_TRUE(named.ok()) << text << ": " << named.error().message;
    std::string outcomes;
    int plans = 0;
    for (std::size_t i = 0; i < named->size() && plans == 0; ++i) {
      const auto plan = make_plan(context, (*named)[i]);
      if (plan.ok()) ++plans;
      outcomes +=
          (*named)[i].mode + " " + (*named)[i].name + ": " + (plan.ok() ? "planned" : plan.error().message) + "\n";
    }
    EXPECT_GT(plans, 0) << text << "\n" << outcomes;
  }
}

}  // namespace
}  // namespace sl::cudnn::test
