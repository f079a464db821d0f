#include "tuner/cudnn/rival.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "tuning/verify.hpp"

namespace sl::cudnn {
namespace {

constexpr std::size_t outcome_length = 300;

std::string shortened(std::string text) {
  if (text.size() > outcome_length) text = text.substr(0, outcome_length) + " ...";
  return text;
}

bool has(const std::vector<int>& notes, int note) { return std::find(notes.begin(), notes.end(), note) != notes.end(); }

/// w of `data` in the layout that the graph states.
std::vector<std::byte> weights_as(const ConvProblem& data, WeightLayout layout, const std::vector<std::byte>& w) {
  ConvProblem to = data;
  to.weight_layout = layout;
  std::vector<std::byte> out(w.size());
  const std::size_t size = size_of(data.dtype);
  for (std::int64_t k = 0; k < data.k; ++k) {
    for (std::int64_t c = 0; c < data.channels_per_group(); ++c) {
      for (std::int64_t r = 0; r < data.r; ++r) {
        for (std::int64_t s = 0; s < data.s; ++s) {
          std::memcpy(out.data() + static_cast<std::size_t>(w_offset(to, k, c, r, s)) * size,
                      w.data() + static_cast<std::size_t>(w_offset(data, k, c, r, s)) * size, size);
        }
      }
    }
  }
  return out;
}

/// Everything that a call needs, kept by the workload.
struct Prepared {
  Device& device;
  Context context;
  Graph graph;
  std::vector<EngineChoice> engines;
  std::vector<Plan> plans;  // one an engine; without a descriptor where none was made
  std::unique_ptr<Buffer> weights, scratch;
  std::vector<Descriptor> packs;  // one a set

  Prepared(Device& d, const Context& c) : device(d), context(c) {}
  /// Plans unload their kernels, which wants the device's context.
  ~Prepared() {
    const Status freed = device.call(nullptr, [this](Stream) -> Status {
      packs.clear();
      plans.clear();
      engines.clear();
      graph = {};
      return {};
    });
    (void)freed.ok();
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  Status run(std::size_t plan, int set, Stream stream) const {
    return device.call(stream, [this, plan, set](Stream on) -> Status {
      const Library& library = *context.library;
      SL_TRY(library.check("cudnnSetStream", library.set_stream(context.handle, on)));
      return library.check("cudnnBackendExecute", library.execute(context.handle, plans[plan].plan.get(),
                                                                  packs[static_cast<std::size_t>(set)].get()));
    });
  }
};

class Preparation {
 public:
  Preparation(Device& device, const Context& context, const ConvProblem& problem, const ConvProblem& data,
              Workspace& workspace, Stream stream, const RivalOptions& options, Chosen& out)
      : device_(device),
        problem_(problem),
        data_(data),
        workspace_(workspace),
        stream_(stream),
        options_(options),
        out_(out),
        ready_(std::make_shared<Prepared>(device, context)) {}

  Status run() {
    SL_TRY(device_.call(nullptr, [this](Stream) { return plan_all(); }));
    SL_TRY(allocate());
    verify();
    choose();
    return {};
  }

 private:
  Status plan_all() {
    SL_ASSIGN(ready_->graph, build_graph(ready_->context, problem_));
    SL_ASSIGN(ready_->engines, choices(ready_->context, ready_->graph, options_.every_engine));
    std::size_t planned = 0;
    for (const EngineChoice& choice : ready_->engines) {
      Attempt attempt;
      attempt.engine = choice.name;
      attempt.mode = choice.mode;
      attempt.notes = note_names(choice.notes);
      Plan made;
      if (problem_.dtype == DType::f32 &&
          (has(choice.notes, note_tensor_core) || has(choice.notes, note_down_convert))) {
        attempt.outcome = "precision: rounds fp32 inputs";
      } else if (!options_.every_engine && options_.limit > 0 && planned == options_.limit) {
        attempt.outcome = "not tried: beyond the limit of " + std::to_string(options_.limit) + " engines";
      } else if (auto plan = make_plan(ready_->context, choice); !plan.ok()) {
        attempt.outcome = shortened("plan: " + plan.error().message);
      } else if (attempt.workspace_bytes = plan->workspace_bytes;
                 static_cast<std::uint64_t>(attempt.workspace_bytes) > options_.workspace_bytes) {
        attempt.outcome = too_much(attempt.workspace_bytes, options_.workspace_bytes);
      } else {
        made = std::move(plan).value();
        ++planned;
      }
      out_.attempts.push_back(std::move(attempt));
      ready_->plans.push_back(std::move(made));
    }
    return {};
  }

  static std::string too_much(std::int64_t wanted, std::uint64_t allowed) {
    return "workspace: wants " + std::to_string(wanted) + " bytes, allowed are " + std::to_string(allowed);
  }

  bool alive(std::size_t i) const { return out_.attempts[i].outcome.empty(); }

  std::int64_t largest_workspace() const {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < out_.attempts.size(); ++i) {
      if (alive(i)) most = std::max(most, out_.attempts[i].workspace_bytes);
    }
    return most;
  }

  /// One scratch for all engines; where the device has no room for it, the hungriest go first.
  Status allocate() {
    for (;;) {
      const std::int64_t bytes = largest_workspace();
      auto scratch = device_.allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)));
      if (scratch.ok()) {
        ready_->scratch = std::move(scratch).value();
        break;
      }
      if (scratch.error().code != Code::out_of_memory || bytes == 0) return scratch.error();
      for (std::size_t i = 0; i < out_.attempts.size(); ++i) {
        Attempt& attempt = out_.attempts[i];
        if (alive(i) && attempt.workspace_bytes == bytes) attempt.outcome = too_much(bytes, 0) + ": no memory left";
      }
    }
    const std::vector<std::byte> w = weights_as(data_, weight_layout(problem_), workspace_.host_data().w);
    SL_ASSIGN(ready_->weights, device_.allocate(w.size()));
    SL_TRY(device_.copy_in(ready_->weights->data(), w.data(), w.size(), stream_));
    return device_.call(nullptr, [this](Stream) { return pack_all(); });
  }

  Status pack_all() {
    for (int set = 0; set < workspace_.sets(); ++set) {
      const SlParams at = workspace_.bind({}, set);
      std::vector<std::int64_t> uids = {uid_x, uid_w, uid_y};
      std::vector<void*> pointers = {const_cast<void*>(at.x), ready_->weights->data(), at.y};
      if (problem_.bias != Bias::none) {
        uids.push_back(uid_bias);
        pointers.push_back(const_cast<void*>(at.bias));
      }
      if (problem_.residual) {
        uids.push_back(uid_z);
        pointers.push_back(const_cast<void*>(at.z));
      }
      SL_ASSIGN(Descriptor pack, make_pack(ready_->context, uids, pointers, ready_->scratch->data()));
      ready_->packs.push_back(std::move(pack));
    }
    return {};
  }

  Workload workload(std::size_t i) const {
    return [ready = ready_, i](int set, Stream on) { return ready->run(i, set, on); };
  }

  void verify() {
    const int threads =
        options_.threads > 0 ? options_.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    Verifier verifier(device_, stream_, workspace_, problem_, {.threads = threads});
    // In what order cuDNN adds is not known; 16-bit engines may use the matrix units.
    const Arithmetic arithmetic = problem_.dtype == DType::f32 ? Arithmetic::fma : Arithmetic::mma;
    for (std::size_t i = 0; i < out_.attempts.size(); ++i) {
      if (!alive(i)) continue;
      const Result<double> verified = verifier.verify(workload(i), arithmetic);
      if (verified.ok()) {
        out_.attempts[i].error_over_bound = *verified;
      } else {
        out_.attempts[i].outcome = shortened(verified.error().message);
      }
    }
  }

  void choose() {
    std::vector<Workload> work;
    std::vector<std::size_t> index;
    for (std::size_t i = 0; i < out_.attempts.size(); ++i) {
      if (!alive(i)) continue;
      work.push_back(workload(i));
      index.push_back(i);
    }
    TimingOptions timing;
    timing.rounds = options_.rounds;
    const auto samples = time_interleaved(device_, stream_, work, workspace_.sets(), timing);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      Attempt& attempt = out_.attempts[index[i]];
      attempt.us = samples[i].median();
      attempt.outcome = !samples[i].error.empty() ? shortened("launch: " + samples[i].error)
                        : samples[i].abandoned    ? "slow"
                                                  : "timed";
    }
    const int best = fastest(samples, 0);
    if (best < 0) {
      out_.error = out_.attempts.empty() ? "no engine" : "no engine ran right; the first: " + out_.attempts[0].outcome;
      return;
    }
    out_.best = index[static_cast<std::size_t>(best)];
    out_.work = workload(out_.best);
  }

  Device& device_;
  const ConvProblem& problem_;
  const ConvProblem& data_;
  Workspace& workspace_;
  Stream stream_;
  const RivalOptions& options_;
  Chosen& out_;
  std::shared_ptr<Prepared> ready_;
};

}  // namespace

double Chosen::heuristic_us() const {
  for (const Attempt& attempt : attempts) {
    if (attempt.mode == "a" && attempt.us > 0) return attempt.us;
  }
  return 0;
}

double Chosen::best_heuristic_us() const {
  double best = 0;
  for (const Attempt& attempt : attempts) {
    if (attempt.mode != "every" && attempt.us > 0 && (best == 0 || attempt.us < best)) best = attempt.us;
  }
  return best;
}

Result<std::unique_ptr<Rival>> Rival::open(Device& device, std::shared_ptr<const Library> library) {
  const bool on_host = device.info().backend == "host";
  if (on_host != library->on_host) {
    return Error{Code::unsupported, "cuDNN computes on GPUs, and the device is " + device.info().name};
  }
  std::unique_ptr<Rival> rival(new Rival(device, std::move(library)));
  SL_TRY(device.call(nullptr, [&](Stream) {
    const Library& cudnn = rival->library();
    return cudnn.check("cudnnCreate of " + cudnn.path, cudnn.create(&rival->context_.handle));
  }));
  return rival;
}

Rival::~Rival() {
  if (context_.handle == nullptr) return;
  const Status destroyed = device_.call(nullptr, [this](Stream) {
    return context_.library->check("cudnnDestroy", context_.library->destroy(context_.handle));
  });
  (void)destroyed.ok();  // nobody is left to tell
}

Chosen Rival::prepare(const ConvProblem& problem, const ConvProblem& data, Workspace& workspace, Stream stream,
                      const RivalOptions& options) {
  Chosen out;
  const Status ran = Preparation(device_, context_, problem, data, workspace, stream, options, out).run();
  if (!ran.ok()) out.error = shortened(ran.error().message);
  return out;
}

}  // namespace sl::cudnn
