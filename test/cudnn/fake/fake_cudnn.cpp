// A cuDNN that computes on host memory by the double reference, with engines that do what a script says. It knows only
// what the rival uses, and refuses what the real one refuses: unknown attributes, what is not finalized, missing parts.
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "fake_state.hpp"

namespace sl::cudnn::fake {

State& state() {
  static State state;
  return state;
}

namespace {

constexpr Status_t bad_param = 2000, not_finalized = 2004, not_supported = 3000, internal = 4000;

Status_t refuse(Status_t status, std::string why) {
  state().last_error = std::move(why);
  return status;
}

/// Counts the call; true where the script says that this one fails.
bool fails() {
  State& s = state();
  if (!s.scripted) {
    const char* const text = std::getenv("FAKE_CUDNN");
    s.script = Script::parse(text != nullptr ? text : "");
    s.scripted = true;
  }
  ++s.calls;
  if (s.script.fail == 0 || s.calls != s.script.fail) return false;
  s.last_error = "as scripted";
  return true;
}

std::size_t size_of(Type type) {
  switch (type) {
    case Type::boolean:
    case Type::character:
      return 1;
    case Type::handle:
    case Type::int64:
    case Type::float64:
    case Type::pointer:
    case Type::descriptor:
      return 8;
    default:
      return 4;
  }
}

/// What must be there, and which of it are descriptors that must be finalized.
std::vector<Attribute> needed(Kind kind) {
  switch (kind) {
    case Kind::tensor:
      return {Attribute::tensor_type, Attribute::tensor_dims, Attribute::tensor_strides, Attribute::tensor_uid,
              Attribute::tensor_alignment};
    case Kind::convolution:
      return {Attribute::convolution_spatial_dims,  Attribute::convolution_compute_type,
              Attribute::convolution_mode,          Attribute::convolution_pre_paddings,
              Attribute::convolution_post_paddings, Attribute::convolution_dilations,
              Attribute::convolution_strides};
    case Kind::pointwise:
      return {Attribute::pointwise_mode, Attribute::pointwise_precision};
    case Kind::operation_convolution:
      return {Attribute::forward_convolution, Attribute::forward_x,     Attribute::forward_w,
              Attribute::forward_y,           Attribute::forward_alpha, Attribute::forward_beta};
    case Kind::operation_pointwise:
      return {Attribute::operation_pointwise, Attribute::operation_pointwise_x, Attribute::operation_pointwise_y};
    case Kind::operation_graph:
      return {Attribute::graph_operations, Attribute::graph_handle};
    case Kind::heuristic:
      return {Attribute::heuristic_graph, Attribute::heuristic_mode};
    case Kind::engine:
      return {Attribute::engine_graph, Attribute::engine_index};
    case Kind::engine_config:
      return {Attribute::config_engine};
    case Kind::plan:
      return {Attribute::plan_config, Attribute::plan_handle};
    case Kind::variant_pack:
      return {Attribute::pack_uids, Attribute::pack_pointers};
    default:
      return {};
  }
}

bool is_descriptor(Attribute attribute) {
  switch (attribute) {
    case Attribute::forward_convolution:
    case Attribute::forward_x:
    case Attribute::forward_w:
    case Attribute::forward_y:
    case Attribute::operation_pointwise:
    case Attribute::operation_pointwise_x:
    case Attribute::operation_pointwise_y:
    case Attribute::graph_operations:
    case Attribute::heuristic_graph:
    case Attribute::engine_graph:
    case Attribute::config_engine:
    case Attribute::plan_config:
      return true;
    default:
      return false;
  }
}

const FakeEngine& engine_of(const Object& object) {
  return state().script.engines[static_cast<std::size_t>(object.engine)];
}

/// Output sizes follow from the padding, as the real one demands.
bool sizes_agree(const Object& op) {
  const Object& conv = *op.child(Attribute::forward_convolution);
  const auto x = op.child(Attribute::forward_x)->get<std::int64_t>(Attribute::tensor_dims);
  const auto w = op.child(Attribute::forward_w)->get<std::int64_t>(Attribute::tensor_dims);
  const auto y = op.child(Attribute::forward_y)->get<std::int64_t>(Attribute::tensor_dims);
  const auto at = [&](Attribute a, std::size_t i) { return conv.get<std::int64_t>(a)[i]; };
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t kernel = (w[2 + i] - 1) * at(Attribute::convolution_dilations, i) + 1;
    const std::int64_t behind = at(Attribute::convolution_post_paddings, i);
    const std::int64_t rest = x[2 + i] + at(Attribute::convolution_pre_paddings, i) + behind - kernel;
    if (behind < 0 || rest < 0 || rest / at(Attribute::convolution_strides, i) + 1 != y[2 + i]) return false;
  }
  return x[1] % w[1] == 0;
}

Status_t finalize(Object& object) {
  for (const Attribute attribute : needed(object.kind)) {
    if (!object.attributes.contains(static_cast<int>(attribute))) {
      return refuse(bad_param, "attribute " + std::to_string(static_cast<int>(attribute)) + " is missing");
    }
    if (!is_descriptor(attribute)) continue;
    for (const Object* const child : object.get<const Object*>(attribute)) {
      if (child == nullptr || !child->finalized) return refuse(not_finalized, "a part is not finalized");
    }
  }
  switch (object.kind) {
    case Kind::operation_convolution:
      if (!sizes_agree(object)) return refuse(2008, "sizes do not agree");
      break;
    case Kind::operation_graph:
      if (!state().script.fuse && object.get<const Object*>(Attribute::graph_operations).size() > 1) {
        return refuse(3001, "no such pattern");
      }
      break;
    case Kind::engine:
      object.engine = static_cast<int>(object.first<std::int64_t>(Attribute::engine_index));
      if (std::cmp_greater_equal(object.engine, state().script.engines.size())) return refuse(2005, "no such engine");
      break;
    case Kind::engine_config:
      object.engine = object.child(Attribute::config_engine)->engine;
      break;
    case Kind::plan:
      object.engine = object.child(Attribute::plan_config)->engine;
      if (engine_of(object).kind == "noplan") return refuse(not_supported, "this engine cannot");
      break;
    default:
      break;
  }
  object.finalized = true;
  return status_success;
}

/// Fills an engine or an engine configuration that a question made, as if it had been built.
void fill(Object& object, int engine, const Object* graph) {
  object.engine = engine;
  object.finalized = true;
  const auto bytes = reinterpret_cast<const std::byte*>(&graph);
  object.attributes[static_cast<int>(Attribute::engine_graph)].assign(bytes, bytes + sizeof graph);
}

Status_t answer_heuristic(const Object& object, std::int64_t asked, std::int64_t* count, void* into) {
  static constexpr char letters[] = {'i', 'b', 'f', 'a'};
  const char letter = letters[object.first<int>(Attribute::heuristic_mode)];
  std::vector<int> named;
  const auto& engines = state().script.engines;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    if (engines[i].modes.find(letter) != std::string::npos) named.push_back(static_cast<int>(i));
  }
  if (named.empty()) return refuse(not_supported, "this mode knows nothing");
  *count = static_cast<std::int64_t>(named.size());
  auto* const out = static_cast<Object**>(into);
  for (std::size_t i = 0; std::cmp_less(i, asked) && i < named.size(); ++i) {
    fill(*out[i], named[i], object.child(Attribute::heuristic_graph));
  }
  return status_success;
}

template <class T>
Status_t one(T value, std::int64_t* count, void* into) {
  *count = 1;
  if (into != nullptr) std::memcpy(into, &value, sizeof value);
  return status_success;
}

Status_t get(const Object& object, Attribute attribute, std::int64_t asked, std::int64_t* count, void* into) {
  if (!object.finalized) return refuse(not_finalized, "not finalized");
  switch (attribute) {
    case Attribute::graph_engine_count:
      return one(static_cast<std::int64_t>(state().script.engines.size()), count, into);
    case Attribute::heuristic_results:
      return answer_heuristic(object, asked, count, into);
    case Attribute::config_engine:
      *count = 1;
      if (asked > 0) fill(**static_cast<Object**>(into), object.engine, nullptr);
      return status_success;
    case Attribute::config_knobs:
      *count = 1;
      if (asked > 0) fill(**static_cast<Object**>(into), object.engine, nullptr);
      return status_success;
    case Attribute::knob_type:
      return one(2, count, into);
    case Attribute::knob_value:
      return one(std::int64_t{object.engine} * 10, count, into);
    case Attribute::engine_index:
      return one(std::int64_t{object.engine}, count, into);
    case Attribute::engine_notes:
      if (engine_of(object).kind == "tf32") return one(int{note_down_convert}, count, into);
      *count = 0;
      return status_success;
    case Attribute::plan_workspace: {
      const std::string& kind = engine_of(object).kind;
      return one(kind == "huge" ? std::int64_t{1} << 50 : std::int64_t{kind == "scratch" ? 4096 : 0}, count, into);
    }
    default:
      return refuse(bad_param, "attribute " + std::to_string(static_cast<int>(attribute)) + " cannot be read");
  }
}

Object* object_of(Descriptor_t descriptor) {
  auto* const object = static_cast<Object*>(descriptor);
  return state().live.contains(object) ? object : nullptr;
}

}  // namespace
}  // namespace sl::cudnn::fake

using namespace sl::cudnn;
using namespace sl::cudnn::fake;

#define FAKE extern "C" __attribute__((visibility("default")))
#define FAKE_CALL                            \
  const std::lock_guard lock(state().mutex); \
  if (fails()) return internal

FAKE const int sluice_cudnn_on_host = 1;

/// For tests in the same process: a new script, and calls counted anew.
FAKE void fake_cudnn_script(const char* text) {
  const std::lock_guard lock(state().mutex);
  state().script = Script::parse(text);
  state().scripted = true;
  state().calls = 0;
}
FAKE int fake_cudnn_calls() { return state().calls; }
FAKE int fake_cudnn_live() { return static_cast<int>(state().live.size()); }

#ifndef FAKE_CUDNN_OMIT
FAKE std::size_t cudnnGetVersion() {
  if (!state().scripted) {
    const char* const text = std::getenv("FAKE_CUDNN");
    return Script::parse(text != nullptr ? text : "").version;
  }
  return state().script.version;
}
#endif
FAKE const char* cudnnGetErrorString(Status_t status) {
  static thread_local char text[32];
  std::snprintf(text, sizeof text, "CUDNN_STATUS_%d", status);
  return text;
}
FAKE void cudnnGetLastErrorString(char* into, std::size_t size) {
  const std::lock_guard lock(state().mutex);
  std::snprintf(into, size, "%s", state().last_error.c_str());
}
FAKE Status_t cudnnCreate(Handle_t* handle) {
  FAKE_CALL;
  if (state().script.create != 0) return refuse(state().script.create, "no GPU, says the script");
  *handle = &state();
  return status_success;
}
FAKE Status_t cudnnDestroy(Handle_t) {
  FAKE_CALL;
  return status_success;
}
FAKE Status_t cudnnSetStream(Handle_t, void*) {
  FAKE_CALL;
  return status_success;
}
FAKE Status_t cudnnBackendCreateDescriptor(int kind, Descriptor_t* descriptor) {
  FAKE_CALL;
  auto* const made = new Object;
  made->kind = static_cast<Kind>(kind);
  state().live.insert(made);
  *descriptor = made;
  return status_success;
}
FAKE Status_t cudnnBackendDestroyDescriptor(Descriptor_t descriptor) {
  const std::lock_guard lock(state().mutex);
  if (object_of(descriptor) == nullptr) return bad_param;
  state().live.erase(static_cast<Object*>(descriptor));
  delete static_cast<Object*>(descriptor);
  return status_success;
}
FAKE Status_t cudnnBackendFinalize(Descriptor_t descriptor) {
  FAKE_CALL;
  Object* const object = object_of(descriptor);
  return object == nullptr ? refuse(bad_param, "no descriptor") : finalize(*object);
}
FAKE Status_t cudnnBackendSetAttribute(Descriptor_t descriptor, int attribute, int type, std::int64_t count,
                                       const void* elements) {
  FAKE_CALL;
  Object* const object = object_of(descriptor);
  if (object == nullptr || object->finalized || count < 1 || elements == nullptr)
    return refuse(bad_param, "cannot set");
  const auto* const bytes = static_cast<const std::byte*>(elements);
  object->attributes[attribute].assign(
      bytes, bytes + static_cast<std::size_t>(count) * fake::size_of(static_cast<Type>(type)));
  return status_success;
}
FAKE Status_t cudnnBackendGetAttribute(Descriptor_t descriptor, int attribute, int, std::int64_t asked,
                                       std::int64_t* count, void* into) {
  FAKE_CALL;
  Object* const object = object_of(descriptor);
  if (object == nullptr) return refuse(bad_param, "no descriptor");
  return get(*object, static_cast<Attribute>(attribute), asked, count, into);
}
FAKE Status_t cudnnBackendExecute(Handle_t handle, Descriptor_t plan, Descriptor_t pack) {
  FAKE_CALL;
  const Object* const what = object_of(plan);
  const Object* const where = object_of(pack);
  if (handle != &state() || what == nullptr || where == nullptr || !what->finalized || !where->finalized) {
    return refuse(bad_param, "cannot execute");
  }
  return run(*what, *where);
}
