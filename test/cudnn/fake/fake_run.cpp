// The fake cuDNN's arithmetic: the graph read back as a ConvProblem, and the double reference run on it.
#include <chrono>
#include <thread>

#include "core/conv_problem.hpp"
#include "fake_state.hpp"
#include "reference/reference.hpp"

namespace sl::cudnn::fake {
namespace {

constexpr Status_t execution_failed = 5000, not_supported = 3000;

DType dtype_of(const Object& tensor) {
  switch (static_cast<Data>(tensor.first<int>(Attribute::tensor_type))) {
    case Data::f16:
      return DType::f16;
    case Data::bf16:
      return DType::bf16;
    case Data::f32:
      break;
  }
  return DType::f32;
}

bool channels_last(const Object& tensor) {
  const auto dims = tensor.get<std::int64_t>(Attribute::tensor_dims);
  const auto strides = tensor.get<std::int64_t>(Attribute::tensor_strides);
  return dims[1] > 1 && strides[1] == 1 && dims[2] * dims[3] > 1;
}

void read_convolution(const Object& op, ConvProblem& p) {
  const Object& x = *op.child(Attribute::forward_x);
  const Object& w = *op.child(Attribute::forward_w);
  const Object& y = *op.child(Attribute::forward_y);
  const Object& conv = *op.child(Attribute::forward_convolution);
  const auto xd = x.get<std::int64_t>(Attribute::tensor_dims), wd = w.get<std::int64_t>(Attribute::tensor_dims),
             yd = y.get<std::int64_t>(Attribute::tensor_dims);
  const auto pair = [&](Attribute a) { return conv.get<std::int64_t>(a); };
  p.n = xd[0], p.c = xd[1], p.h = xd[2], p.w = xd[3];
  p.k = wd[0], p.groups = xd[1] / wd[1], p.r = wd[2], p.s = wd[3];
  p.p = yd[2], p.q = yd[3];
  p.pad_top = pair(Attribute::convolution_pre_paddings)[0], p.pad_left = pair(Attribute::convolution_pre_paddings)[1];
  p.stride_h = pair(Attribute::convolution_strides)[0], p.stride_w = pair(Attribute::convolution_strides)[1];
  p.dil_h = pair(Attribute::convolution_dilations)[0], p.dil_w = pair(Attribute::convolution_dilations)[1];
  p.dtype = dtype_of(x);
  p.layout = channels_last(x) || channels_last(y) ? Layout::nhwc : Layout::nchw;
  p.weight_layout = channels_last(w) ? WeightLayout::ohwi : WeightLayout::oihw;
}

/// False where it is none that a ConvProblem has.
bool read_pointwise(const Object& op, ConvProblem& p) {
  const Object& what = *op.child(Attribute::operation_pointwise);
  switch (static_cast<Pointwise>(what.first<int>(Attribute::pointwise_mode))) {
    case Pointwise::add: {
      const Object& addend = *op.child(Attribute::operation_pointwise_b);
      if (addend.first<std::int64_t>(Attribute::tensor_uid) == 5) {
        p.residual = true;
      } else {
        p.bias = dtype_of(addend) == p.dtype ? Bias::same : Bias::f32;
      }
      return true;
    }
    case Pointwise::relu: {
      const double low = what.first<double>(Attribute::pointwise_lower_clip);
      const double high = what.first<double>(Attribute::pointwise_upper_clip);
      const double slope = what.first<double>(Attribute::pointwise_lower_slope);
      p.activation = slope != 0 ? Activation::leaky_relu : Activation::clip;
      p.alpha = static_cast<float>(slope != 0 ? slope : low);
      p.beta = slope != 0 ? 0.0F : static_cast<float>(high);
      return true;
    }
    case Pointwise::swish:
      p.activation = Activation::silu;
      return true;
    case Pointwise::gelu_erf:
      p.activation = Activation::gelu_erf;
      return true;
    case Pointwise::gelu_tanh:
      p.activation = Activation::gelu_tanh;
      return true;
  }
  return false;
}

}  // namespace

Status_t run(const Object& plan, const Object& pack) {
  const FakeEngine& engine = state().script.engines[static_cast<std::size_t>(plan.engine)];
  const Object& config = *plan.child(Attribute::plan_config);
  const Object* graph = config.child(Attribute::engine_graph);  // of a heuristic's answer
  if (graph == nullptr) graph = config.child(Attribute::config_engine)->child(Attribute::engine_graph);
  ConvProblem p;
  for (const Object* const op : graph->get<const Object*>(Attribute::graph_operations)) {
    if (op->kind == Kind::operation_convolution) {
      read_convolution(*op, p);
    } else if (!read_pointwise(*op, p)) {
      return not_supported;
    }
  }
  std::map<std::int64_t, std::byte*> at;
  const auto uids = pack.get<std::int64_t>(Attribute::pack_uids);
  const auto pointers = pack.get<std::byte*>(Attribute::pack_pointers);
  for (std::size_t i = 0; i < uids.size(); ++i) at[uids[i]] = pointers[i];
  if (engine.kind == "noexec") return execution_failed;
  if (engine.kind == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(3));
  if (engine.kind == "scratch") std::memset(pack.first<void*>(Attribute::pack_workspace), 0x11, 4096);

  const std::size_t size = sl::size_of(p.dtype);
  const auto span = [&](std::int64_t uid, std::int64_t elements, std::size_t each) {
    return std::span<const std::byte>(at.at(uid), static_cast<std::size_t>(elements) * each);
  };
  HostTensors in{span(1, p.x_elements(), size), span(2, p.w_elements(), size), {}, {}};
  if (p.bias != Bias::none) in.bias = span(4, p.k, p.bias == Bias::f32 ? 4 : size);
  if (p.residual) in.z = span(5, p.y_elements(), size);
  std::vector<std::byte> y = reference_output(p, in);
  if (engine.kind == "wrong") store_element(p.dtype, y.data(), 0, load_element(p.dtype, y.data(), 0) + 1);
  const std::size_t written = engine.kind == "unwritten" ? y.size() - size : y.size();
  std::memcpy(at.at(3), y.data(), written);
  if (engine.kind == "overrun") at.at(3)[y.size()] = std::byte{0};
  return status_success;
}

}  // namespace sl::cudnn::fake
