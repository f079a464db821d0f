// cuDNN's backend API (the C interface under its graph API): the handful of its types, numbers and functions that the
// rival needs. Written out here so that the program builds where there is no cuDNN; the ABI of these names is frozen
// within a major version, and test/cudnn/abi_test.cpp compares them with the real header where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sl::cudnn {

using Status_t = int;
using Handle_t = void*;
using Descriptor_t = void*;

constexpr std::size_t oldest_version = 90000, versions_end = 100000;  ///< major 9 only

enum : Status_t { status_success = 0, status_not_supported = 3000, status_not_supported_end = 4000 };

enum class Kind : int {
  pointwise = 0,
  convolution = 1,
  engine = 2,
  engine_config = 3,
  heuristic = 4,
  plan = 5,
  knob_choice = 7,
  operation_convolution = 10,
  operation_pointwise = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  device_properties = 38,
};

enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_precision = 1,
  pointwise_lower_clip = 3,
  pointwise_upper_clip = 4,
  pointwise_lower_slope = 5,
  pointwise_swish_beta = 8,
  convolution_compute_type = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial_dims = 106,
  heuristic_mode = 200,
  heuristic_graph = 201,
  heuristic_results = 202,
  heuristic_device = 204,
  config_engine = 300,
  config_knobs = 302,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  plan_device = 407,
  knob_type = 600,
  knob_value = 601,
  forward_alpha = 700,
  forward_beta = 701,
  forward_convolution = 702,
  forward_w = 703,
  forward_x = 704,
  forward_y = 705,
  operation_pointwise = 750,
  operation_pointwise_x = 751,
  operation_pointwise_b = 752,
  operation_pointwise_y = 753,
  graph_handle = 800,
  graph_operations = 801,
  graph_engine_count = 802,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dims = 902,
  tensor_strides = 903,
  tensor_uid = 906,
  tensor_virtual = 907,
  pack_uids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_graph = 1300,
  engine_index = 1301,
  engine_notes = 1303,
  engine_device = 1307,
  device_json = 2702,
};

/// How the elements of an attribute are read.
enum class Type : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  float32 = 4,
  float64 = 5,
  pointer = 6,
  convolution_mode = 7,
  heuristic_mode = 8,
  knob_type = 9,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15,
  character = 24,
};

enum class Data : int { f32 = 0, f16 = 2, bf16 = 9 };
enum class Pointwise : int { add = 0, relu = 100, gelu_erf = 104, swish = 106, gelu_tanh = 107 };
enum class HeuristicMode : int { instant = 0, b = 1, fallback = 2, a = 3 };
enum : int { cross_correlation = 1 };

enum NumericalNote : int {
  note_tensor_core = 0,
  note_down_convert = 1,
  note_reduced_precision = 2,
  note_fft = 3,
  note_nondeterministic = 4,
  note_winograd = 5,
  note_count = 10,
};

// X(member, symbol, result, arguments)
#define SLUICE_CUDNN_SYMBOLS(X)                                                                                        \
  X(get_version, "cudnnGetVersion", std::size_t, ())                                                                   \
  X(get_error_string, "cudnnGetErrorString", const char*, (Status_t))                                                  \
  X(get_last_error, "cudnnGetLastErrorString", void, (char*, std::size_t))                                             \
  X(create, "cudnnCreate", Status_t, (Handle_t*))                                                                      \
  X(destroy, "cudnnDestroy", Status_t, (Handle_t))                                                                     \
  X(set_stream, "cudnnSetStream", Status_t, (Handle_t, void*))                                                         \
  X(create_descriptor, "cudnnBackendCreateDescriptor", Status_t, (int, Descriptor_t*))                                 \
  X(destroy_descriptor, "cudnnBackendDestroyDescriptor", Status_t, (Descriptor_t))                                     \
  X(finalize, "cudnnBackendFinalize", Status_t, (Descriptor_t))                                                        \
  X(set_attribute, "cudnnBackendSetAttribute", Status_t, (Descriptor_t, int, int, std::int64_t, const void*))          \
  X(get_attribute, "cudnnBackendGetAttribute", Status_t, (Descriptor_t, int, int, std::int64_t, std::int64_t*, void*)) \
  X(execute, "cudnnBackendExecute", Status_t, (Handle_t, Descriptor_t, Descriptor_t))

}  // namespace sl::cudnn
