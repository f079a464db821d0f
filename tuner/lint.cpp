// `sluice lint`: what is wrong with tables although they can be read.
#include "routing/lint.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/json_reader.hpp"
#include "jit/backends.hpp"
#include "jit/binary_cache.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"

namespace sl::tool {
namespace {

struct Report {
  std::string file, kind;
  std::vector<Finding> findings;
};

/// Winners that no longer compile for the table's device.
Status compile_all(const DecisionList& list, std::vector<Finding>& findings) {
  SL_ASSIGN(const auto environment, read_environment());
  const Log log(stderr_sink(false), LogLevel::warning);
  const bool host = list.device.backend == "host";
  const std::shared_ptr<Compiler> compiler =
      host ? make_host_compiler(environment, log) : make_nvrtc_compiler(environment, log);
  const auto identity = compiler->identity();
  if (!identity.available) return Error{Code::environment, "--compile: no compiler: " + identity.why_not};
  std::vector<KernelSpec> specs;
  std::vector<const Decision*> rows;
  for (const Decision& d : list.decisions) {
    const Schedule* const schedule = find_schedule(d.schedule);
    const auto problem = parse(d.problem);
    const auto config = Config::parse(d.config);
    if (schedule == nullptr || !problem.ok() || !config || schedule->can_run(*problem, list.device)) continue;
    if (schedule->fits(*problem, *config)) continue;  // lint() has said so
    specs.push_back(schedule->kernel(*problem, *config));
    rows.push_back(&d);
  }
  BinaryCache cache(compiler, nullptr, log);
  const auto binaries =
      cache.get(specs, list.device, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  for (std::size_t i = 0; i < binaries.size(); ++i) {
    if (!binaries[i].ok()) findings.push_back({true, rows[i]->problem, binaries[i].error().message});
  }
  return {};
}

Result<Report> lint_file(const std::string& path, bool compile) {
  SL_ASSIGN(const std::string text, read_text_file(path));
  SL_ASSIGN(const nlohmann::json document, parse_json(text, path));
  if (document.is_object() && document.contains("rules")) {
    SL_ASSIGN(const RoutingTable table, RoutingTable::from_json(text, path));
    return Report{path, "routing table of " + std::to_string(table.rules().size()) + " rules", lint(table)};
  }
  if (document.is_object() && document.contains("decisions")) {
    SL_ASSIGN(const DecisionList list, read_decisions(text, path));
    Report report{path, "decision table of " + std::to_string(list.decisions.size()) + " calls",
                  lint(list.decisions, list.device)};
    if (compile) SL_TRY(compile_all(list, report.findings));
    return report;
  }
  if (document.is_object() && document.contains("runs")) {
    SL_ASSIGN(const Sanitized list, Sanitized::from_json(text, path));
    std::size_t builds = 0;
    for (const SanitizerRun& run : list.runs()) builds += run.passed.size();
    return Report{path, "list of " + std::to_string(builds) + " builds that passed the sanitizers", lint(list)};
  }
  if (document.is_object() && document.contains("predicts")) {
    SL_ASSIGN(const Heuristic heuristic, Heuristic::from_json(text, path));
    return Report{path, "heuristic of " + std::to_string(heuristic.schedules().size()) + " schedules", lint(heuristic)};
  }
  return Error{Code::invalid, path + ": neither a routing table (\"rules\"), a decision table (\"decisions\"), a " +
                                  "heuristic (\"predicts\") nor a list of sanitized schedules (\"runs\")"};
}

void show(const std::vector<Report>& reports) {
  for (const Report& r : reports) {
    std::printf("%s: %s, %s\n", r.file.c_str(), r.kind.c_str(),
                r.findings.empty() ? styled(Style::good, "nothing wrong").c_str()
                                   : (std::to_string(r.findings.size()) + " findings").c_str());
    for (const Finding& f : r.findings) {
      const std::string word = f.error ? styled(Style::bad, "error") : styled(Style::strong, "look");
      std::printf("  %s: %s: %s\n", word.c_str(), f.where.c_str(), f.what.c_str());
    }
  }
}

void show_json(const std::vector<Report>& reports) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const Report& r : reports) {
    nlohmann::ordered_json findings = nlohmann::ordered_json::array();
    for (const Finding& f : r.findings) findings.push_back({{"error", f.error}, {"where", f.where}, {"what", f.what}});
    out.push_back({{"file", r.file}, {"kind", r.kind}, {"findings", findings}});
  }
  std::fputs(dump_json({{"files", out}}, true).c_str(), stdout);
}

}  // namespace

int lint_command(const Options& options) {
  std::vector<Report> reports;
  int code = exit_done;
  for (const std::string& path : options.inputs) {
    auto report = lint_file(path, options.compile);
    if (!report.ok()) {
      code = std::max(code, fail(report.error()));
      continue;
    }
    const auto& findings = report->findings;
    if (std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.error; })) {
      code = std::max<int>(code, exit_usage);
    }
    reports.push_back(std::move(*report));
  }
  options.json ? show_json(reports) : show(reports);
  return code;
}

}  // namespace sl::tool
