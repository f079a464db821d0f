// `sluice tune --isolate`: a child does the work, and this process only listens. It opens no device, so whatever a
// candidate does to the child's context, memory or time, the next child goes on from the rows that are on disk.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/calls.hpp"
#include "tuner/child.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/worker.hpp"

namespace sl::tool {
namespace {

// A schedule that is broken for good must not cost a child for each of its candidates and calls.
constexpr std::size_t deaths_in_a_call = 2;  // then it is not tried any more for that call
constexpr std::size_t calls_of_a_death = 3;  // so many calls, then for no call
constexpr std::size_t deaths_of_a_call = 2;  // where no candidate was at work: then the call fails

struct Name {
  std::string schedule, config;
};

/// What the running child has said last.
struct Heard {
  std::string call, step, lost;
  std::vector<Name> at;  // the candidates whose work it is
  std::size_t tuned = 0;
  std::optional<TuneTally> done;
  bool hung = false;
};

std::string signal_text(int signal) {
  const char* const words = ::strsignal(signal);
  return "signal " + std::to_string(signal) + (words == nullptr ? "" : " (" + std::string(words) + ")");
}

class Supervisor {
 public:
  Supervisor(const Options& o, std::size_t calls) : options_(o), work_(calls, o.budget) {}

  Result<int> run() {
    for (;;) {
      heard_ = Heard();
      const std::string orders = orders_.to_json();
      SL_ASSIGN(const Child child, start_child(words(), &orders));
      listen(child);
      const int status = wait_for(child);
      if (heard_.done) return finish(WIFEXITED(status) ? WEXITSTATUS(status) : static_cast<int>(exit_environment));
      tuned_before_ += heard_.tuned;
      const bool orderly = WIFEXITED(status) && heard_.lost.empty() && heard_.at.empty();
      if (orderly) return WEXITSTATUS(status);  // it has said why
      const std::string why = cause(status);
      if (heard_.call.empty()) return Error{Code::environment, "the child that tunes ended before it began: " + why};
      blame(why);
    }
  }

 private:
  std::vector<std::string> words() const {
    Options its = options_;
    its.worker = true;
    its.isolate = its.json = false;
    its.parent = ::getpid();
    if (its.budget > 0) its.budget = std::max(work_.left(), 1e-3);
    return tune_words(its);
  }

  /// Until the child's end, or its killing.
  void listen(const Child& child) {
    std::string text;
    char block[4096];
    const int patience = static_cast<int>(options_.patience * 1000);
    for (;;) {
      pollfd one = {child.report.get(), POLLIN, 0};
      const int ready = ::poll(&one, 1, heard_.hung ? -1 : patience);
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) {
        heard_.hung = true;
        ::kill(child.pid, SIGKILL);
        continue;
      }
      const ssize_t got = ::read(child.report.get(), block, sizeof block);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      text.append(block, static_cast<std::size_t>(got));
      std::size_t from = 0;
      for (std::size_t end = 0; (end = text.find('\n', from)) != std::string::npos; from = end + 1)
        hear(text.substr(from, end - from));
      text.erase(0, from);
    }
  }

  void hear(const std::string& line) {
    const auto said = nlohmann::json::parse(line, nullptr, false);
    if (!said.is_object()) return;
    if (said.contains("call")) {
      heard_.call = said.at("call");
      heard_.step.clear();
      heard_.at.clear();
      work_.at(said.at("place"), heard_.call);
    } else if (said.contains("step")) {
      heard_.step = said.at("step");
      heard_.at.clear();
      for (const auto& one : said.at("at")) heard_.at.push_back({one.at(0), one.at(1)});
    } else if (said.contains("lost")) {
      heard_.lost = said.at("lost");
    } else if (said.contains("tuned")) {
      ++heard_.tuned;
    } else if (said.contains("failed")) {
      orders_.skipped.emplace(said.at("failed"), "failed");
    } else if (said.contains("done")) {
      heard_.done.emplace().add(said.at("done"));
    }
  }

  /// What the row of a candidate says that ended a child.
  std::string cause(int status) const {
    const std::string in = heard_.step.empty() ? "" : "in " + heard_.step + ": ";
    if (heard_.hung) return "timed out: " + in + "nothing for " + number(options_.patience) + " s";
    if (!heard_.lost.empty()) return "crashed: " + in + heard_.lost;
    if (WIFSIGNALED(status)) return "crashed: " + in + signal_text(WTERMSIG(status));
    return "crashed: " + in + "exit code " + std::to_string(WEXITSTATUS(status));
  }

  /// The candidate that was at work is left out from now on.
  void blame(const std::string& why) {
    const std::string& call = heard_.call;
    if (heard_.at.empty()) return blame_call(why);
    if (heard_.at.size() > 1 && orders_.singly != call) {
      orders_.singly = call;  // which of them it was shows when they are compiled one by one
      return;
    }
    for (const Name& one : heard_.at) {
      orders_.left_out[call].push_back({one.schedule, one.config, why});
      warn(call + ": " + one.schedule + " " + one.config + ": " + why + "; going on without it");
      ++crashed_;
      give_up(one.schedule);
    }
  }

  void give_up(const std::string& schedule) {
    const std::string& call = heard_.call;
    std::map<std::string, std::size_t>& calls = deaths_[schedule];
    if (++calls[call] >= deaths_in_a_call) {
      orders_.given_up[call][schedule] =
          "skipped: the schedule took " + std::to_string(deaths_in_a_call) + " children with it";
    }
    if (calls.size() >= calls_of_a_death) {
      orders_.given_up[""][schedule] =
          "skipped: the schedule took children with it in " + std::to_string(calls_of_a_death) + " calls";
    }
  }

  void blame_call(const std::string& why) {
    if (++deaths_[""][heard_.call] < deaths_of_a_call) return;
    orders_.skipped.emplace(heard_.call, why);
    warn(heard_.call + ": " + why + ", twice, and no candidate was at work; going on without it");
  }

  int finish(int code) {
    TuneTally& tally = *heard_.done;
    // What earlier children tuned was there for the last.
    tally.tuned += tuned_before_;
    tally.there -= std::min(tally.there, tuned_before_);
    tally.crashed = crashed_;
    show(tally, options_.out, options_.json);
    return code;
  }

  const Options& options_;
  LongWork work_;
  WorkerOrders orders_;
  Heard heard_;
  std::map<std::string, std::map<std::string, std::size_t>> deaths_;  // by schedule ("" = of none), then by call
  std::size_t tuned_before_ = 0, crashed_ = 0;
};

}  // namespace

Result<int> tune_isolated(const Options& o, const std::vector<ConvProblem>& calls) {
  return Supervisor(o, calls.size()).run();
}

}  // namespace sl::tool
