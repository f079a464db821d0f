#include "tuner/record.hpp"

#include <cmath>

#include "tuner/print.hpp"

namespace sl::tool {
namespace {

std::string device_line(const DeviceInfo& d) {
  std::string text = d.name;
  if (d.capability > 0) text += "  (" + std::to_string(d.capability / 10) + "." + std::to_string(d.capability % 10);
  if (d.capability > 0 && d.backend == "host") text += " emulated";
  if (d.capability > 0) text += ")";
  return text;
}

std::string candidate_table(const Decision& d) {
  Grid grid({"schedule", "config", "us", "10 %", "90 %", "regs", "smem", "outcome"});
  const auto time = [](double us) { return us > 0 ? number(us) : std::string(); };
  const auto count = [](int value) { return value > 0 ? std::to_string(value) : std::string(); };
  for (const auto& c : d.candidates) {
    const bool winner = c.schedule == d.schedule && c.config == d.config;
    std::string outcome = c.outcome;
    if (c.predicted > 0) outcome += ", predicted " + number(c.predicted);
    if (c.spill_bytes > 0) outcome += ", spills " + std::to_string(c.spill_bytes) + " bytes";
    grid.row({c.schedule, c.config, time(c.median_us), time(c.low_us), time(c.high_us), count(c.registers),
              count(c.smem), winner ? outcome + "  <- winner" : outcome});
  }
  return grid.text("  ");
}

std::string refusal_table(const Decision& d) {
  Grid grid({"", ""});
  for (const auto& r : d.refusals) grid.row({r.schedule, r.reason});
  return grid.text("  ");
}

std::string spread_text(const Spread& s) {
  return duration(s.median) + "  (" + number(s.low) + " to " + number(s.high) + ")";
}

std::string measured_text(const Measurement& m) {
  std::string out;
  const std::string share = m.checked == m.outputs
                                ? "all " + std::to_string(m.outputs) + " outputs checked"
                                : std::to_string(m.checked) + " of " + std::to_string(m.outputs) + " outputs checked";
  if (m.wrong == 0) {
    out += field("result", styled(Style::good, "right") + ": error/bound " + number(m.error_over_bound) + "  (" +
                               share + " against the double reference)");
  } else {
    out += field("result", styled(Style::bad, "WRONG") + ": " + std::to_string(m.wrong) + " wrong, " + share +
                               "; first: " + m.first_wrong);
  }
  if (m.time) out += field("time", spread_text(*m.time));
  if (m.time && m.copy) {
    out += field("copy", spread_text(*m.copy) + " for the same bytes; the call takes " +
                             number(m.time->median / m.copy->median) + " times that");
  }
  return out;
}

}  // namespace

CounterValues counters_of(const Session& session) {
  const auto& jit = session.binaries->counters();
  const auto dispatch = session.dispatcher->counters();
  return {jit.compiles.load(), jit.binary_hits.load(), dispatch.decision_hits, dispatch.tunings, dispatch.launches};
}

bool kept(const Record& record) { return record.decision.route == "keep"; }

void complete(Decision& decision, const Preflight& preflight) {
  if (decision.refusals.empty()) decision.refusals = preflight.set.refusals;
  if (!decision.candidates.empty()) return;
  for (const auto& candidate : preflight.set.candidates) {
    CandidateRecord record;
    record.schedule = std::string(candidate.schedule->name);
    record.config = candidate.config.to_string();
    record.outcome = "untimed";
    decision.candidates.push_back(std::move(record));
  }
}

std::string record_text(const Record& r) {
  const Decision& d = r.decision;
  std::string out = field("problem", styled(Style::strong, r.problem.to_string()));
  out += field("device", device_line(r.device));
  // The reason of UNSUPPORTED is the list of refusals, which follows.
  const bool listed = d.verdict == Verdict::unsupported && !d.refusals.empty();
  const std::string reason = listed ? "no schedule can run it" : d.reason;
  out += field("verdict", std::string(name(d.verdict)) + (reason.empty() ? "" : ": " + reason));
  out += field("route", d.route + (d.rule.empty() ? "" : "  by rule \"" + d.rule + "\"") +
                            (d.table.empty() ? "" : " of " + d.table));
  for (const auto& place : d.searched) out += field("", styled(Style::faint, place));
  if (!d.schedule.empty()) {
    std::string origin(name(d.origin));
    if (d.match != Match::none && d.origin != Origin::tuned) origin += ", match " + std::string(name(d.match));
    out += field("winner", styled(Style::strong, d.schedule + " " + d.config) + "  (" + origin + ")");
  }
  if (!d.heuristic.empty()) out += field("heuristic", "picked by " + d.heuristic + "; nothing was timed");
  if (!d.arch_note.empty()) out += field("note", d.arch_note);
  if (!d.candidates.empty()) out += styled(Style::faint, "candidates") + "\n" + candidate_table(d);
  if (d.noise_floor > 0) out += "  differences below " + number(100 * d.noise_floor) + " % do not count\n";
  if (!d.refusals.empty()) out += styled(Style::faint, "refused") + "\n" + refusal_table(d);
  if (r.measured) out += measured_text(*r.measured);
  if (kept(r)) out += field("kept", "your own convolution should run this call; nothing was launched");
  const auto& c = r.counters;
  out += field("counters", "compiles " + std::to_string(c.compiles) + ", binary hits " + std::to_string(c.binary_hits) +
                               ", decision hits " + std::to_string(c.decision_hits) + ", tunings " +
                               std::to_string(c.tunings) + ", launches " + std::to_string(c.launches));
  return out;
}

}  // namespace sl::tool
