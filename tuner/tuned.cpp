#include "tuner/tuned.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>
#include <tuple>

#include "core/json_reader.hpp"
#include "routing/lint.hpp"
#include "tuner/agreement.hpp"

namespace sl::tool {
namespace {

using Json = nlohmann::json;

/// One time a candidate, 0 where it failed; nullopt where one was not looked at, or none has a time.
std::optional<std::vector<double>> times_of(const Decision& decision, const CandidateSet& set) {
  std::vector<double> times;
  for (const Candidate& candidate : set.candidates) {
    const auto row = std::find_if(decision.candidates.begin(), decision.candidates.end(), [&](const auto& one) {
      return one.schedule == candidate.schedule->name && one.config == candidate.config.to_string();
    });
    if (row == decision.candidates.end() || row->outcome == "untimed" || row->outcome.starts_with("skipped")) {
      return std::nullopt;
    }
    times.push_back(was_timed(row->outcome) ? row->median_us : 0);
  }
  if (std::none_of(times.begin(), times.end(), [](double time) { return time > 0; })) return std::nullopt;
  return times;
}

Result<DeviceInfo> described(const std::string& gpu, const std::string& where) {
  std::string known;
  for (const std::string& stem : described_devices()) {
    SL_ASSIGN(const DeviceInfo device, described_device(stem));
    if (device.name == gpu) return device;
    known += (known.empty() ? "" : ", ") + device.name;
  }
  return Error{Code::invalid, where + ": gpu = \"" + gpu + "\" has no description, so its candidates are not known; " +
                                  "decision tables bring their own; described are " + known};
}

class Reader {
 public:
  explicit Reader(std::shared_ptr<const Sanitized> passed) : passed_(std::move(passed)) {}

  Status file(const std::string& path) {
    SL_ASSIGN(const std::string text, read_text_file(path));
    const Json whole = Json::parse(text, nullptr, false);
    if (whole.is_object() && whole.contains("rows")) return results(text, path);
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    const std::string first = start == std::string::npos ? "" : text.substr(start, text.find('\n', start) - start);
    const Json header = Json::parse(first, nullptr, false);
    if (header.is_object() && header.contains("gpu") && !header.contains("decisions")) return lines(text, path);
    return table(text, path);
  }

  Result<TunedFile> done() && {
    if (calls_.empty()) {
      std::string why;
      if (out_.incomplete > 0)
        why += "; of " + std::to_string(out_.incomplete) +
               " calls not every candidate was timed: "
               "tune them with a larger --tune-ms";
      if (out_.stale > 0) why += "; " + std::to_string(out_.stale) + " were won by what is no candidate of this build";
      if (out_.failed > 0) why += "; " + std::to_string(out_.failed) + " failed";
      return Error{Code::invalid, "no tuned call to learn from" + why};
    }
    for (auto& [problem, entry] : calls_) out_.calls.push_back(std::move(entry.call));
    return std::move(out_);
  }

 private:
  struct Entry {
    TunedCall call;
    double budget_ms = 0;
  };

  Status kind(const std::string& what, const std::string& path) {
    return agreement_.check("what it holds", what, path);
  }

  void add(TunedCall call, double budget_ms) {
    const std::string key = call.problem.to_string();
    const auto at = calls_.find(key);
    if (at == calls_.end()) {
      calls_.emplace(key, Entry{std::move(call), budget_ms});
      return;
    }
    ++out_.duplicates;
    // Whatever the order of the files, the same of two stands.
    TunedCall& there = at->second.call;
    const auto order = [](const TunedCall& one) {
      return std::tuple(one.winner == nullptr ? std::string_view() : one.winner->name, one.time_us);
    };
    const bool better =
        budget_ms != at->second.budget_ms ? budget_ms > at->second.budget_ms : order(call) < order(there);
    if (better) at->second = {std::move(call), budget_ms};
  }

  Status table(const std::string& text, const std::string& path) {
    SL_ASSIGN(const DecisionList list, read_decisions(text, path));
    SL_TRY(kind("every candidate's time", path));
    SL_TRY(agreement_.check("device", to_json(list.device), path));
    out_.device = list.device;
    for (const Decision& decision : list.decisions) {
      if (decision.schedule.empty() || decision.route != "take") continue;
      SL_TRY(agreement_.check("driver", decision.driver, path));
      out_.versions =
          decision.driver.empty() ? decision.compiler : "driver " + decision.driver + ", " + decision.compiler;
      TunedCall call;
      SL_ASSIGN(call.problem, parse(decision.problem));
      // Tuned in a child, or here: without what must not be tried here.
      call.set = candidates(call.problem, list.device, {}, {});
      if (call.set.digest() != decision.candidate_set)
        call.set = candidates(call.problem, list.device, {}, {}, passed_.get());
      if (call.set.digest() != decision.candidate_set) {
        return Error{Code::invalid, path + ": " + decision.problem +
                                        ": tuned with other candidates, or another build of them, than this program "
                                        "has; the same `sluice tune` command tunes it again"};
      }
      auto times = times_of(decision, call.set);
      if (!times) {
        ++out_.incomplete;
        continue;
      }
      call.time_us = *std::move(times);
      add(std::move(call), decision.budget_ms);
    }
    return {};
  }

  Status header(const Json& header, const std::string& where) {
    SL_TRY(kind("winners only", where));
    const std::string gpu = header.at("gpu");
    SL_TRY(agreement_.check("gpu", gpu, where));
    std::string versions;
    for (const char* const key : {"driver", "commit"}) {
      // `sluice bench` writes "580.1 (CUDA 13.0)", compare_torch.py "580.1".
      const std::string whole = header.value(key, ""), value = whole.substr(0, whole.find(' '));
      SL_TRY(agreement_.check(key, value, where));
      if (!value.empty()) versions += (versions.empty() ? "" : ", ") + (key + (" " + value));
    }
    SL_ASSIGN(out_.device, described(gpu, where));
    out_.versions = versions;
    return {};
  }

  Status row(const Json& row, const std::string& where) {
    if (row.contains("error") || !row.contains("schedule")) {
      ++out_.failed;
      return {};
    }
    TunedCall call;
    const auto problem = parse(row.at("signature").get<std::string>());
    if (!problem.ok()) return Error{Code::invalid, where + ": signature: " + problem.error().message};
    call.problem = *problem;
    call.set = candidates(call.problem, out_.device, {}, {});
    call.winner = find_schedule(row.at("schedule").get<std::string>());
    if (!has_schedule(call.set.candidates, call.winner)) {
      ++out_.stale;
      return {};
    }
    add(std::move(call), 0);
    return {};
  }

  Status results(const std::string& text, const std::string& path) {
    SL_ASSIGN(const Json document, parse_json(text, path));
    try {
      SL_TRY(header(document, path));
      std::size_t index = 0;
      for (const Json& one : document.at("rows")) SL_TRY(row(one, path + ": row " + std::to_string(index++)));
    } catch (const Json::exception& error) {
      return Error{Code::invalid, path + ": " + error.what()};
    }
    return {};
  }

  Status lines(const std::string& text, const std::string& path) {
    std::istringstream stream(text);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      if (line.empty()) continue;
      const std::string where = path + ":" + std::to_string(number);
      SL_ASSIGN(const Json one, parse_json(line, where));
      try {
        SL_TRY(one.contains("gpu") ? header(one, where) : row(one, where));
      } catch (const Json::exception& error) {
        return Error{Code::invalid, where + ": " + error.what()};
      }
    }
    return {};
  }

  std::shared_ptr<const Sanitized> passed_;
  TunedFile out_;
  Agreement agreement_;
  std::map<std::string, Entry> calls_;
};

}  // namespace

Result<TunedFile> read_tuned(const std::vector<std::string>& paths, std::shared_ptr<const Sanitized> passed) {
  Reader reader(std::move(passed));
  for (const std::string& path : paths) SL_TRY(reader.file(path));
  return std::move(reader).done();
}

}  // namespace sl::tool
