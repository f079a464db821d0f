#include "tuning/tuner.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iomanip>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "tuning/compiling.hpp"
#include "tuning/verify.hpp"
#include "tuning/workspace.hpp"

namespace sl {
namespace {

// Shares of the time budget after which a phase begins nothing new, so that the next one has time left.
constexpr double compile_share = 0.6;
constexpr double verify_share = 0.8;
constexpr double timing_share = 0.1;  // what is kept free for timing when the batch to time on is chosen
constexpr int baseline_rounds = 5;
constexpr std::int64_t largest_call = 256 << 20;  // bytes: several times any L2, so that a larger batch ranks the same
constexpr std::int64_t probe_elements = 1 << 20;  // of x and y, where candidates are checked; at least two images
constexpr const char* none_loaded = "no candidate could be loaded";
constexpr const char* none_right = "no candidate computes the right result";
constexpr std::size_t outcome_length = 400;  // a compiler's log can be pages long; the log has the whole of it

struct Entry {
  const Candidate* candidate = nullptr;
  CandidateRecord* record = nullptr;
  std::shared_ptr<const Binary> binary;
  Launchable launchable;
  bool first = false;     // of its schedule
  bool left_out = false;  // dropped before anything was tried
  bool compiled = false;  // or tried to
  bool alive = false;     // loaded, and neither dropped nor skipped since
  bool verified = false;  // its output was right

  Code failure = Code::ok;

  void drop(std::string outcome, Code code) {
    failure = code;
    if (outcome.size() > outcome_length) outcome = outcome.substr(0, outcome_length) + " ...";
    record->outcome = std::move(outcome);
    alive = false;
  }
};

class OwnStream {
 public:
  OwnStream(Device& device, Stream stream) : device_(device), stream_(stream) {}
  ~OwnStream() { device_.destroy_stream(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  Stream get() const { return stream_; }

 private:
  Device& device_;
  Stream stream_;
};

class Tuning {
 public:
  Tuning(Device& device, BinaryCache& cache, const ConvProblem& problem, const CandidateSet& set,
         const TuneOptions& options, const Log& log, TuneResult& out)
      : device_(device),
        cache_(cache),
        problem_(problem),
        tuned_(problem),
        options_(options),
        log_(log),
        out_(out),
        decision_(out.decision) {
    decision_.problem = problem.to_string();
    decision_.device = device.info().name;
    decision_.driver = device.driver();
    decision_.refusals = set.refusals;
    decision_.candidate_set = set.digest();
    decision_.candidates.resize(set.candidates.size());
    entries_.resize(set.candidates.size());
    samples_.resize(set.candidates.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      entries_[i].candidate = &set.candidates[i];
      entries_[i].record = &decision_.candidates[i];
      entries_[i].record->schedule = set.candidates[i].schedule->name;
      entries_[i].record->config = set.candidates[i].config.to_string();
      entries_[i].record->outcome = skipped_budget;  // until something is tried
      leave_out(entries_[i]);
      entries_[i].first =
          !entries_[i].left_out && std::none_of(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(i),
                                                [&set, i](const Entry& other) {
                                                  return !other.left_out &&
                                                         other.candidate->schedule == set.candidates[i].schedule;
                                                });
    }
    const std::size_t own = entries_.size() - std::min(set.for_other_batches, entries_.size());
    for (const bool early : {true, false}) {
      for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].left_out) continue;
        if ((entries_[i].first || i >= own) == early) to_compile_.push_back(&entries_[i]);
      }
      if (early) early_ = to_compile_.size();
    }
  }

  void run() {
    if (problem_.empty()) return fail("nothing to compute: n = 0", Code::invalid);
    if (entries_.empty()) return fail("no candidate can run", Code::unsupported);
    if (to_compile_.empty()) return fail_all(none_loaded);
    begin_chunk();
    const Result<Stream> stream = device_.create_stream();
    if (!stream.ok()) {
      make(nullptr, problem_);  // what is wrong with the kernels is said first
      if (!any_alive()) return fail_all(none_loaded);
      return fail("no stream to tune on: " + stream.error().message, stream.error().code);
    }
    const OwnStream own(device_, *stream);
    const bool checked = make_on_few(own.get());
    if (!any_alive()) return fail_all(loaded_ ? none_right : none_loaded);
    made_ms_ = spent_ms();
    const Result<std::unique_ptr<Workspace>> workspace = make_workspace(own.get());
    if (!workspace.ok()) {
      if (workspace.error().code != Code::out_of_memory) return fail(workspace.error().message, workspace.error().code);
      return take_untimed(workspace.error().message);
    }
    Verifier verifier(device_, own.get(), **workspace, tuned_, {options_.verify_outputs, threads()});
    if (!checked) {
      for (Entry& entry : entries_) check(entry, verifier, tuned_);
      make(&verifier, tuned_);
    }
    if (!any_alive()) return fail_all(none_right);
    for (Entry& entry : entries_) {
      if (entry.alive) prepare(entry, tuned_);
    }
    scratch_ms_ = spent_ms();
    time(**workspace, own.get());
    timed_ms_ = spent_ms();
    choose(verifier);
    if (out_.winner >= 0 && options_.time_copy && left_ms() > 0) time_copy(**workspace, own.get());
  }

  void fail(const std::string& reason, Code code) {
    out_.failure = code;
    decision_.reason = decision_.problem + ": " + reason;
    log_.write(LogLevel::warning, "tuning failed: " + decision_.reason);
  }

 private:
  double spent_ms() const { return std::chrono::duration<double, std::milli>(options_.timing.now() - start_).count(); }
  double left_ms(double share = 1) const { return options_.budget.time_ms * share - spent_ms(); }

  /// What making a workspace of this batch is expected to take: as long as the one of the few did, and its bytes.
  double making_ms(const ConvProblem& problem) const {
    return making_few_ms_ + static_cast<double>(problem.min_bytes()) / options_.host_bytes_per_ms;
  }

  double check_ms() const { return checks_ms_ / std::max(1, checks_); }

  /// What checking the winner on this batch is expected to take: two runs, each as long as checks have taken so far
  /// (while others were compiled, on the same cores), and all outputs of both read and looked at.
  double last_check_ms(const ConvProblem& problem) const {
    const double y_bytes = static_cast<double>(problem.y_elements()) * static_cast<double>(size_of(problem.dtype));
    return 2 * (check_ms() + y_bytes / options_.host_bytes_per_ms);
  }

  int threads() const {
    if (options_.budget.threads > 0) return options_.budget.threads;
    return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, 16);
  }

  void leave_out(Entry& entry) const {
    for (const LeftOut& one : options_.left_out) {
      if (one.schedule != entry.record->schedule || one.config != entry.record->config) continue;
      entry.drop(one.outcome, Code::device);
      entry.left_out = true;
      return;
    }
  }

  void announce(std::string_view step, std::span<Entry* const> entries) const {
    if (!options_.watch) return;
    std::vector<std::size_t> places;
    for (const Entry* entry : entries) places.push_back(static_cast<std::size_t>(entry - entries_.data()));
    options_.watch(step, places);
  }
  void announce(std::string_view step, Entry& entry) const {
    Entry* const one = &entry;
    announce(step, std::span(&one, 1));
  }

  bool any_alive() const {
    return std::any_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.alive; });
  }

  /// Makes candidates ready to be timed: compiles them in chunks, as one cannot be stopped, loads each as soon as it is
  /// there, and checks it where there is a verifier, so that only the slowest compile is waited for. The first guess of
  /// every schedule always, and what other batches of this shape would choose first: they are not to compile anything.
  /// Goes on while nothing is right (or has loaded) yet, whatever the budget says: nothing unverified may be served in
  /// place of what was found wrong.
  void make(Verifier* verifier, const ConvProblem& problem) {
    const auto any = [&] { return verifier != nullptr ? any_right_ : any_alive(); };
    for (;;) {
      if (chunk_.empty()) {
        if (compiled_ == to_compile_.size()) return;
        if (compiled_ >= early_ && any() && !time_for_a_chunk()) return;
        begin_chunk();
      }
      while (std::optional<Compiling::Arrival> arrival = compiling_->next()) {
        Entry& entry = *chunk_[arrival->index];
        load(entry, std::move(arrival->binary));
        if (verifier != nullptr) check(entry, *verifier, problem);
      }
      for (Entry* const entry : chunk_) {
        if (!entry->compiled) load(*entry, Error{Code::internal, "no answer"});
      }
      chunk_ = {};
      chunk_ms_ = compiling_->took_ms();
      compiling_ms_ += chunk_ms_;
    }
  }

  /// Whether another will end in time if it takes as long as the one before: within the share of all compiling, and
  /// before checks must end.
  bool time_for_a_chunk() const {
    return compiling_ms_ + chunk_ms_ < options_.budget.time_ms * compile_share && left_ms(verify_share) > chunk_ms_;
  }

  /// Beside what this thread does meanwhile, but for one that watches: what crashes is to be known for what it is.
  void begin_chunk() {
    std::size_t chunk = static_cast<std::size_t>(threads());
    if (options_.watch) {
      // Who watches hears of it often: a compiler that has hung must not be told from many that take their time.
      if (options_.compile_singly) chunk = 1;
    } else if (compiled_ == 0 && 2 * early_ > chunk) {
      // NVRTC's front end takes one program at a time, so a chunk that is filled up takes longer: not where the first
      // guesses of many schedules are a good half of it.
      chunk = early_;
    }
    chunk_ = std::span(to_compile_).subspan(compiled_, std::min(chunk, to_compile_.size() - compiled_));
    compiled_ += chunk_.size();
    announce("compile", chunk_);
    std::vector<KernelSpec> specs;
    for (const Entry* entry : chunk_) {
      specs.push_back(entry->candidate->schedule->kernel(problem_, entry->candidate->config));
    }
    compiling_.emplace(cache_, device_.info(), std::move(specs), threads(), options_.overlap && !options_.watch,
                       options_.timing.now);
  }

  void load(Entry& entry, Result<std::shared_ptr<const Binary>> binary) {
    entry.compiled = true;
    if (!binary.ok()) {
      const std::string& why = binary.error().message;
      log_.warn_once("compile " + entry.record->schedule + entry.record->config,
                     decision_.problem + ": " + entry.record->schedule + " does not compile: " + why);
      return entry.drop("compile: " + why, binary.error().code);
    }
    entry.binary = *binary;
    const Schedule& schedule = *entry.candidate->schedule;
    entry.launchable.geometry = schedule.geometry(problem_, entry.candidate->config);
    entry.launchable.arithmetic = schedule.arithmetic;
    entry.record->registers = entry.binary->registers;
    entry.record->spill_bytes = entry.binary->spill_bytes;
    entry.record->smem = entry.binary->static_smem + entry.launchable.geometry.dynamic_smem;
    announce("load", entry);
    auto kernel = device_.load(*entry.binary, entry.launchable.geometry.dynamic_smem);
    if (!kernel.ok()) return entry.drop("load: " + kernel.error().message, kernel.error().code);
    entry.launchable.kernel = std::move(kernel).value();
    entry.record->outcome = "untimed";
    entry.alive = loaded_ = true;
  }

  WorkspaceOptions workspace_options() const {
    WorkspaceOptions options;
    options.max_bytes = options_.budget.scratch_bytes;
    options.seed = options_.seed != 0
                       ? options_.seed
                       : static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return options;
  }

  /// n is in no binary, so a smaller batch runs the same kernels; the ranking is taken to hold for the whole.
  Result<std::unique_ptr<Workspace>> make_workspace(Stream stream) {
    const auto too_large = [this](const ConvProblem& problem) {
      return problem.min_bytes() > largest_call ||
             making_ms(problem) + last_check_ms(problem) > left_ms(1 - timing_share);
    };
    announce("scratch", {});
    while (tuned_.n > 1 && too_large(tuned_)) tuned_.n = (tuned_.n + 1) / 2;
    for (;;) {
      auto workspace = Workspace::create(device_, stream, tuned_, workspace_options());
      if (!workspace.ok() && workspace.error().code == Code::out_of_memory && tuned_.n > 1) {
        tuned_.n /= 2;
        continue;
      }
      if (workspace.ok() && tuned_.n != problem_.n) {
        decision_.reason = "tuned with n = " + std::to_string(tuned_.n) +
                           ": a larger batch does not fit the scratch memory, or would only take longer to measure";
      }
      return workspace;
    }
  }

  /// Checks every candidate on a few images (n is in no binary), so that checking a large batch does not eat the
  /// budget; the winner is checked on the whole before it is taken. False where there is no memory for that: then all
  /// are made, to be checked on the whole. Its scratch is gone before the whole's is made, so that one budget holds
  /// either.
  bool make_on_few(Stream stream) {
    ConvProblem few = problem_;
    const std::int64_t image = std::max<std::int64_t>(1, (few.x_elements() + few.y_elements()) / few.n);
    few.n = std::min(few.n, std::max<std::int64_t>(2, probe_elements / image));
    WorkspaceOptions options = workspace_options();
    options.max_sets = 1;
    announce("scratch", {});
    const double before = spent_ms();
    const auto workspace = Workspace::create(device_, stream, few, options);
    making_few_ms_ = spent_ms() - before;
    if (!workspace.ok()) {
      make(nullptr, few);
      return false;
    }
    Verifier verifier(device_, stream, **workspace, few, {options_.verify_outputs, threads()});
    make(&verifier, few);
    return true;
  }

  void prepare(Entry& entry, const ConvProblem& problem) const {
    const Candidate& candidate = *entry.candidate;
    entry.launchable.geometry = candidate.schedule->geometry(problem, candidate.config);
    candidate.schedule->params(problem, candidate.config, entry.launchable.params);
  }

  /// The first guess of every schedule is checked, however late, so that no schedule loses to another's slow compiles.
  void check(Entry& entry, Verifier& verifier, const ConvProblem& problem) {
    if (!entry.alive) return;
    if (any_right_ && !entry.first && left_ms(verify_share) <= check_ms()) {
      return entry.drop(std::string(skipped_compiled), Code::ok);
    }
    prepare(entry, problem);
    announce("check", entry);
    const double before = spent_ms();
    const Result<double> verified = verifier.verify(entry.launchable);
    checks_ms_ += spent_ms() - before;
    ++checks_;
    if (!verified.ok()) return drop_wrong(entry, verified.error());
    entry.record->error_over_bound = *verified;
    entry.verified = any_right_ = true;
  }

  void drop_wrong(Entry& entry, const Error& error) {
    const std::string& outcome = error.message;
    log_.warn_once("wrong " + entry.record->schedule + entry.record->config,
                   decision_.problem + ": " + entry.record->schedule + " " + entry.record->config + ": " + outcome);
    entry.drop(outcome, error.code);
  }

  void time(const Workspace& workspace, Stream stream) {
    std::vector<Entry*> timed;
    std::vector<Workload> work;
    for (Entry& entry : entries_) {
      if (!entry.alive) continue;
      timed.push_back(&entry);
      work.emplace_back([this, &workspace, &launchable = entry.launchable](int set, Stream on) {
        return device_.launch(*launchable.kernel, launchable.geometry, workspace.bind(launchable.params, set), on);
      });
    }
    TimingOptions timing = options_.timing;
    timing.deadline_us = std::max(1.0, (left_ms() - last_check_ms(tuned_)) * 1000);
    const auto later = std::find_if(timed.begin(), timed.end(), [](const Entry* entry) { return !entry->first; });
    timing.certain = static_cast<int>(later - timed.begin());
    if (options_.watch) timing.before = [this, &timed](std::size_t i) { announce("time", *timed[i]); };
    std::vector<Samples> samples = time_interleaved(device_, stream, work, workspace.sets(), timing);
    decision_.noise_floor = noise_floor(samples);
    for (std::size_t i = 0; i < timed.size(); ++i) record(*timed[i], std::move(samples[i]));
  }

  void record(Entry& entry, Samples samples) {
    entry.record->median_us = samples.median();
    entry.record->low_us = samples.percentile(0.1);
    entry.record->high_us = samples.percentile(0.9);
    if (samples.error == skipped_budget) {
      entry.drop(std::string(skipped_compiled), Code::ok);
    } else if (!samples.error.empty()) {
      entry.drop("launch: " + samples.error, Code::device);
    } else {
      entry.record->outcome = samples.abandoned ? "slow" : "timed";
      samples_[static_cast<std::size_t>(&entry - entries_.data())] = std::move(samples);
    }
  }

  /// A winner that does not repeat itself is dropped for the next; where nothing could be timed (no memory for the
  /// recordings, say) the first that computes the right result is taken as it is.
  void choose(Verifier& verifier) {
    for (;;) {
      const int fastest_one = fastest(samples_, decision_.noise_floor + options_.hysteresis);
      auto winner = entries_.begin() + std::max(0, fastest_one);
      if (fastest_one < 0) {
        winner = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.verified; });
        if (winner == entries_.end()) return fail_all("no candidate could be timed");
      }
      announce("check", *winner);
      if (const Status repeats = verifier.verify_repeats(winner->launchable); !repeats.ok()) {
        winner->verified = false;
        samples_[static_cast<std::size_t>(winner - entries_.begin())] = {};
        drop_wrong(*winner, repeats.error());
        continue;
      }
      if (winner->alive) return take(*winner, Origin::tuned);
      decision_.reason = "not timed: " + winner->record->outcome;
      return take(*winner, Origin::heuristic);
    }
  }

  void take(const Entry& winner, Origin origin) {
    out_.winner = static_cast<int>(&winner - entries_.data());
    out_.binary = winner.binary;
    decision_.route = "take";
    decision_.schedule = winner.record->schedule;
    decision_.config = winner.record->config;
    decision_.schedule_digest = winner.candidate->schedule->digest();
    decision_.origin = origin;
    decision_.match = Match::exact;
    decision_.compiler = winner.binary->compiler;
    if (winner.binary->format == Binary::Format::ptx) {
      decision_.arch_note = "device newer than the compiler: PTX of " + winner.binary->arch;
    }
    log_.write(LogLevel::debug, "tuned " + decision_.problem + ": " + decision_.schedule + " " + decision_.config +
                                    where_the_time_went());
  }

  std::string where_the_time_went() const {
    std::ostringstream text;
    text << std::fixed << std::setprecision(0) << "; " << made_ms_ << " ms compiling and checking";
    if (timed_ms_ > 0) {
      text << ", " << scratch_ms_ - made_ms_ << " making scratch, " << timed_ms_ - scratch_ms_ << " timing, "
           << spent_ms() - timed_ms_ << " checking the winner";
    }
    return text.str();
  }

  void take_untimed(const std::string& why) {
    const auto first = std::find_if(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.alive; });
    decision_.reason = "not timed: " + why;
    take(*first, Origin::heuristic);
  }

  void time_copy(Workspace& workspace, Stream stream) {
    announce("copy", {});
    const std::vector<Workload> work = {[&](int set, Stream on) { return workspace.copy_same_bytes(set, on); }};
    TimingOptions timing = options_.timing;
    timing.rounds = std::min(timing.rounds, baseline_rounds);
    timing.deadline_us = std::max(1.0, left_ms() * 1000);
    decision_.baseline_us = time_interleaved(device_, stream, work, workspace.sets(), timing).front().median();
  }

  void fail_all(const std::string& reason) {
    std::string all;
    for (const CandidateRecord& record : decision_.candidates) {
      if (ran_out_of_time(record.outcome)) continue;
      all += "; " + record.schedule + " " + record.config + ": " + record.outcome;
      if (all.size() > 2 * outcome_length) break;
    }
    fail(reason + all, common_failure());
  }

  /// The code that every candidate failed with; Code::wrong_result where they failed for different reasons.
  Code common_failure() const {
    Code common = Code::ok;
    for (const Entry& entry : entries_) {
      if (entry.failure == Code::ok) continue;
      if (common != Code::ok && common != entry.failure) return Code::wrong_result;
      common = entry.failure;
    }
    return common == Code::ok ? Code::wrong_result : common;
  }

  Device& device_;
  BinaryCache& cache_;
  const ConvProblem& problem_;
  ConvProblem tuned_;  // problem_, or a smaller batch of it
  const TuneOptions& options_;
  const Log& log_;
  TuneResult& out_;
  Decision& decision_;
  std::chrono::steady_clock::time_point start_ = options_.timing.now();
  double making_few_ms_ = 0, chunk_ms_ = 0, compiling_ms_ = 0, checks_ms_ = 0;  // what those steps took
  int checks_ = 0;
  double made_ms_ = 0, scratch_ms_ = 0, timed_ms_ = 0;  // when
  std::vector<Entry> entries_;
  std::vector<Entry*> to_compile_;  // in this order
  std::size_t early_ = 0;           // the first so many of them are compiled whatever the budget
  std::size_t compiled_ = 0;        // the first so many of them have been
  std::span<Entry* const> chunk_;   // of them, the last that was begun
  std::optional<Compiling> compiling_;
  bool loaded_ = false, any_right_ = false;  // any so far
  std::vector<Samples> samples_;             // one an entry
};

}  // namespace

TuneResult tune(Device& device, BinaryCache& cache, const ConvProblem& problem, const CandidateSet& set,
                const TuneOptions& options, const Log& log) {
  TuneResult result;
  try {
    Tuning tuning(device, cache, problem, set, options, log, result);
    tuning.run();
  } catch (const std::exception& error) {  // bad_alloc, or no thread to be had
    result.winner = -1;
    result.failure = Code::internal;
    result.binary.reset();
    result.decision.schedule.clear();
    result.decision.config.clear();
    result.decision.route.clear();
    result.decision.origin = Origin::none;
    result.decision.reason = std::string("tuning stopped: ") + error.what();
  }
  return result;
}

}  // namespace sl
