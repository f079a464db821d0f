// Run, prepare, run prepared: the hot paths. Nothing here allocates or locks while all is well.
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "capi/context.hpp"
#include "capi/errors.hpp"
#include "capi/plain_call.hpp"
#include "capi/versioned.hpp"
#include "capi/views.hpp"
#include "dispatch/quick_launch.hpp"
#include "dispatch/triage.hpp"

namespace sl::capi {
namespace {

constexpr const char* kept_text = "kept: run your own convolution; sluice_explain gives the reason";

/// The struct as this library knows it; `storage` holds it where the caller's has another size.
Result<const sluice_conv2d_args*> known_args(const sluice_conv2d_args* args, sluice_conv2d_args& storage) {
  if (args == nullptr) return Error{Code::invalid, "args = NULL, must point to a sluice_conv2d_args"};
  if (args->size == sizeof(sluice_conv2d_args)) return args;
  storage = SLUICE_CONV2D_ARGS_INIT;
  constexpr std::size_t least = offsetof(sluice_conv2d_args, y) + sizeof(sluice_tensor);
  SL_TRY(read_versioned(args, least, "sluice_conv2d_args", storage));
  return static_cast<const sluice_conv2d_args*>(&storage);
}

/// Reads the caller's struct into `call`, which may point into `storage` afterwards.
Code read_given(const sluice_conv2d_args* given, Data data, sluice_conv2d_args& storage, Call& call, Error& error) {
  Result<const sluice_conv2d_args*> args = known_args(given, storage);
  if (args.ok()) return read_call(**args, data, call, error);
  error = std::move(args).error();
  return error.code;
}

/// The answer to a call with a strided view, which no schedule reads.
sluice_status strided(sluice_context& context, const Call& call) {
  if (Status status = validate(call.problem); !status.ok()) return report(std::move(status).error());
  if (call.regular == Regular::no) {
    return report({Code::unsupported, "REQUIRED call " + signature(call.problem, context.device->info()) +
                                          " cannot be served: " + describe_strided(call)});
  }
  context.kept_for_strides.fetch_add(1, std::memory_order_relaxed);
  return report_constant(SLUICE_KEPT, kept_for_strides(call));
}

/// With every check, and words for what fails one.
[[gnu::noinline]] sluice_status conv2d_in_full(sluice_context* context, const sluice_conv2d_args* given, void* stream) {
  if (context == nullptr) return invalid("context = NULL, must be a context");
  sluice_conv2d_args storage;
  Call call;
  Error error;
  if (read_given(given, Data::needed, storage, call, error) != Code::ok) return report(std::move(error));
  if (call.strided != nullptr) return strided(*context, call);
  const Code code = context->dispatcher->conv2d(call.problem, call.tensors, stream, call.regular, error);
  if (code == Code::ok) return SLUICE_OK;
  if (code == Code::kept && error.message.empty()) return report_constant(SLUICE_KEPT, kept_text);
  error.code = code;
  return report(std::move(error));
}

sluice_status conv2d(sluice_context* context, const sluice_conv2d_args* given, void* stream) {
  PlainCall call;
  if (context != nullptr && given != nullptr && read_plain(*given, call)) [[likely]] {
    const Code code = context->dispatcher->known(call.key, call.tensors, stream);
    if (code == Code::ok) return SLUICE_OK;
    if (code == Code::kept) return report_constant(SLUICE_KEPT, kept_text);
  }
  return guarded([&] { return conv2d_in_full(context, given, stream); });
}

sluice_status prepare(sluice_context* context, const sluice_conv2d_args* given, void* stream, sluice_plan** plan) {
  if (plan == nullptr) return invalid("plan = NULL, must point to where the plan goes");
  *plan = nullptr;
  if (context == nullptr) return invalid("context = NULL, must be a context");
  sluice_conv2d_args storage;
  Call call;
  Error error;
  if (read_given(given, Data::optional, storage, call, error) != Code::ok) return report(std::move(error));
  if (call.strided != nullptr) return strided(*context, call);
  auto prepared = context->dispatcher->prepare(call.problem, stream, call.regular);
  if (!prepared.ok()) return report(std::move(prepared).error());
  if ((*prepared)->entry.kind == PlanEntry::Kind::kept) {
    return report({Code::kept, "kept: " + (*prepared)->decision.reason});
  }
  *plan = new sluice_plan(*context->dispatcher, std::move(prepared).value());
  return SLUICE_OK;
}

/// Whether the pointers are there, aligned, and apart from y, in few instructions; false for some that run_in_full()
/// takes, too.
bool fit(const sluice_plan& plan, const Tensors& t) {
  const Extents& bytes = plan.entry.bytes;
  // No address has its highest bit, so one that has after subtracting 1 was 0.
  const std::uintptr_t missing = ((number(t.x) - 1) | (number(t.w) - 1) | (number(t.y) - 1)) >> 63;
  const std::uintptr_t low_bits =
      ((number(t.x) | number(t.w) | number(t.z) | number(t.y)) & plan.no_bits) | (number(t.bias) & plan.bias_no_bits);
  if ((missing | low_bits) != 0) return false;
  if ((number(t.bias) | number(t.z) | bytes.bias | bytes.z) != 0) {
    if ((t.bias != nullptr) != (bytes.bias != 0) || (t.z != nullptr) != (bytes.z != 0)) return false;
  }
  return y_is_apart(bytes, t);
}

/// With every check, and words for what fails one.
[[gnu::noinline]] sluice_status run_in_full(const sluice_plan* plan, const Tensors& tensors, void* stream) {
  if (plan == nullptr) return invalid("plan = NULL, must be a plan");
  const ConvProblem& problem = plan->plan->problem;
  // Empty tensors have no data: frameworks pass NULL for them, or any address.
  if (problem.n == 0) return SLUICE_OK;
  Error error;
  if (check_pointers(problem, plan->entry.bytes, tensors, Data::needed, error) != Code::ok) {
    return report(std::move(error));
  }
  if (const int alignment = alignment_class(tensors); alignment < problem.align) {
    return invalid("x, w, z and y are aligned to " + std::to_string(alignment) +
                   " bytes together, must be at least the " + std::to_string(problem.align) +
                   " that the plan was prepared for");
  }
  Status status = plan->dispatcher.run(*plan->plan, tensors, stream);
  return status.ok() ? SLUICE_OK : report(std::move(status).error());
}

sluice_status run(const sluice_plan* plan, const Tensors& tensors, void* stream) {
  if (plan != nullptr && fit(*plan, tensors) && run_quickly(plan->hot, plan->entry, tensors, stream)) [[likely]]
    return SLUICE_OK;
  return guarded([&] { return run_in_full(plan, tensors, stream); });
}

/// Text for a caller who frees it with sluice_string_free.
sluice_status hand_out(const std::string& text, char** out) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  *out = copy;
  return SLUICE_OK;
}

Decision strided_record(const sluice_context& context, const Call& call) {
  Decision record;
  record.problem = call.problem.to_string();
  record.device = context.device->info().name;
  record.verdict = Verdict::unsupported;
  record.route = call.regular == Regular::yes ? "keep" : "reject";
  record.rule = "strided view";
  record.reason = describe_strided(call);
  return record;
}

sluice_status explain(sluice_context* context, const sluice_conv2d_args* given, bool dry, char** json) {
  if (json == nullptr) return invalid("json = NULL, must point to where the text goes");
  *json = nullptr;
  if (context == nullptr) return invalid("context = NULL, must be a context");
  sluice_conv2d_args storage;
  Call call;
  Error error;
  if (read_given(given, Data::optional, storage, call, error) != Code::ok) return report(std::move(error));
  if (call.strided != nullptr) {
    if (Status status = validate(call.problem); !status.ok()) return report(std::move(status).error());
    return hand_out(to_json(strided_record(*context, call)), json);
  }
  Result<Decision> record = context->dispatcher->explain(call.problem, call.regular, dry);
  if (!record.ok()) return report(std::move(record).error());
  return hand_out(to_json(*record), json);
}

/// Takes the token `regular=yes|no` out of a problem's text.
Result<Regular> take_regular(std::string& text) {
  constexpr std::string_view token = "regular=";
  const std::size_t at = text.find(token);
  if (at == std::string::npos || (at != 0 && text[at - 1] != ' ')) return Regular::yes;
  const std::size_t end = std::min(text.find(' ', at), text.size());
  const std::string value = text.substr(at + token.size(), end - at - token.size());
  text.erase(at, std::min(end + 1, text.size()) - at);
  while (!text.empty() && text.back() == ' ') text.pop_back();
  if (value == "yes") return Regular::yes;
  if (value == "no") return Regular::no;
  return Error{Code::invalid, "regular=" + value + ", must be regular=yes or regular=no"};
}

sluice_status explain_text(sluice_context* context, const char* given, bool dry, char** json) {
  if (json == nullptr) return invalid("json = NULL, must point to where the text goes");
  *json = nullptr;
  if (context == nullptr) return invalid("context = NULL, must be a context");
  if (given == nullptr) return invalid("problem = NULL, must be a benchdnn convolution descriptor");
  std::string text = given;
  const Result<Regular> regular = take_regular(text);
  if (!regular.ok()) return report(Error(regular.error()));
  Result<ConvProblem> problem = parse(text);
  if (!problem.ok()) return report(std::move(problem).error());
  Result<Decision> record = context->dispatcher->explain(*problem, *regular, dry);
  if (!record.ok()) return report(std::move(record).error());
  return hand_out(to_json(*record), json);
}

}  // namespace
}  // namespace sl::capi

sluice_plan::sluice_plan(sl::Dispatcher& dispatcher_in, std::shared_ptr<const sl::Plan> plan_in)
    : no_bits(static_cast<std::uintptr_t>(plan_in->problem.align) - 1),
      bias_no_bits((plan_in->problem.bias == sl::Bias::f32 ? 4 : sl::size_of(plan_in->problem.dtype)) - 1),
      hot(dispatcher_in.hot()),
      entry(plan_in->entry),
      dispatcher(dispatcher_in),
      plan(std::move(plan_in)) {}

extern "C" {

[[gnu::hot]] sluice_status sluice_conv2d(sluice_context* context, const sluice_conv2d_args* args, void* stream) {
  return sl::capi::conv2d(context, args, stream);
}

sluice_status sluice_prepare(sluice_context* context, const sluice_conv2d_args* args, void* stream,
                             sluice_plan** plan) {
  return sl::capi::guarded([&] { return sl::capi::prepare(context, args, stream, plan); });
}

[[gnu::hot]] sluice_status sluice_plan_run(const sluice_plan* plan, const void* x, const void* w, const void* bias,
                                           const void* z, void* y, void* stream) {
  return sl::capi::run(plan, {x, w, bias, z, y}, stream);
}

void sluice_plan_destroy(sluice_plan* plan) { delete plan; }

sluice_status sluice_explain(sluice_context* context, const sluice_conv2d_args* args, int32_t dry, char** json) {
  return sl::capi::guarded([&] { return sl::capi::explain(context, args, dry != 0, json); });
}

sluice_status sluice_explain_text(sluice_context* context, const char* problem, int32_t dry, char** json) {
  return sl::capi::guarded([&] { return sl::capi::explain_text(context, problem, dry != 0, json); });
}

void sluice_string_free(char* string) { delete[] string; }

}  // extern "C"
