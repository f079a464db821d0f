// The program sluice-rewrite, which `sluice rewrite` becomes: docs/program.md and docs/graph.md.
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/json_reader.hpp"
#include "graph/target.hpp"
#include "graph_onnx/model.hpp"
#include "jit/backends.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/options.hpp"
#include "tuner/print.hpp"
#include "tuner/session.hpp"
#include "tuner/suite_make.hpp"
#include "tuner/suite_onnx.hpp"

namespace sl::tool {
namespace {

using graph::Action;

Result<DeviceInfo> target_of(const std::string& device, const Environment& environment) {
  const bool cuda = device == "cuda" || device.starts_with("cuda:");
  if (!device.empty() && !cuda) return graph::target_device(device);
  if (device.empty()) {
    const auto count = cuda_device_count(environment);
    if (!count.ok() || *count == 0) return graph::target_device("host");
  }
  SL_ASSIGN(const DeviceName name, parse_device_name(device.empty() ? "cuda" : device));
  const Log silent;
  SL_ASSIGN(const auto opened, open_cuda_device(name.ordinal, environment, silent));
  return opened->info();
}

using Lowering = std::function<Regular(const ConvProblem*)>;

/// A file has the form of a routing table for any device: "take" is what the lowering cannot compile.
Result<Lowering> lowering_of(const std::string& what, const DeviceInfo& device) {
  if (what == "none") return Lowering([](const ConvProblem*) { return Regular::no; });
  if (what == "onnxruntime") {  // its Conv has no bfloat16, on the CPU or on CUDA
    return Lowering([](const ConvProblem* problem) {
      return problem != nullptr && problem->dtype == DType::bf16 ? Regular::no : Regular::yes;
    });
  }
  SL_ASSIGN(const std::string text, read_text_file(what));
  SL_ASSIGN(RoutingTable table, RoutingTable::from_json(text, what));
  if (!table.for_any_device())
    return Error{Code::invalid,
                 what + ": $.device: must be \"any\": what a lowering can compile is asked for any device"};
  const auto shared = std::make_shared<const RoutingTable>(std::move(table));
  return Lowering([shared, device](const ConvProblem* problem) {
    return problem != nullptr && shared->decide(*problem, device).take ? Regular::no : Regular::yes;
  });
}

/// Before anything is read: the input is never modified, and something is asked for.
Status check(const Options& options) {
  namespace fs = std::filesystem;
  if (options.out.empty())
    return options.dry_run ? Status() : Error{Code::invalid, "-o FILE is missing (or --dry-run)"};
  std::error_code ignored;
  if (fs::exists(options.out, ignored) && fs::equivalent(options.model, options.out, ignored))
    return Error{Code::invalid, "-o " + options.out + " is the model itself, which is never modified"};
  return {};
}

Status check_external(const graph::OnnxModel& model, const Options& options) {
  namespace fs = std::filesystem;
  if (options.dry_run || !model.has_external_data()) return {};
  std::error_code ignored;
  const auto folder = [](const std::string& file) { return fs::absolute(file).parent_path(); };
  if (fs::equivalent(folder(options.model), folder(options.out), ignored)) return {};
  return Error{Code::invalid, options.model + ": its weights are in files beside it; -o must be in the same folder, " +
                                  folder(options.model).string()};
}

std::string why(const graph::NodeReport& node) {
  if (node.rule.empty()) return node.reason;
  return node.reason.empty() ? node.rule : node.rule + ": " + node.reason;
}

std::string text(const graph::Report& report, bool dry) {
  Grid grid({"node", "verdict", "action", "speed-up", "folded", "rule or reason"});
  for (const graph::NodeReport& node : report.nodes) {
    grid.row({node.name.empty() ? "(unnamed)" : printable(node.name), std::string(name(node.verdict)),
              std::string(name(node.action)), node.speedup > 0 ? number(node.speedup) + "x" : "",
              node.absorbed > 0 ? std::to_string(node.absorbed) : "", printable(why(node))});
  }
  std::string out = field("device", report.device) +
                    field("graph", std::to_string(report.graph_nodes) + " nodes, " +
                                       std::to_string(report.nodes.size()) + " convolutions") +
                    "\n" + grid.text() + "\n";
  return out + std::to_string(report.count(Action::take)) + " of " + std::to_string(report.nodes.size()) +
         (dry ? " would be replaced\n" : " replaced\n");
}

Result<int> rewrite(const Options& options) {
  SL_TRY(check(options));
  SL_ASSIGN(const Environment environment, environment_of(options));
  const Log log(stderr_sink(options.verbose), options.verbose ? LogLevel::debug : LogLevel::warning);
  graph::OnnxOptions pass;
  SL_ASSIGN(pass.target.device, target_of(options.device, environment));
  SL_ASSIGN(TableChoice tables, find_routing_table(pass.target.device, environment.routing_table, log));
  pass.target.table = std::move(tables.table);
  pass.target.force_take = options.force;
  if (!environment.force_schedule.empty()) pass.target.only.push_back(environment.force_schedule);
  pass.target.disabled = environment.disabled_schedules;
  SL_ASSIGN(pass.target.sanitized, find_sanitized(environment.sanitized));
  SL_ASSIGN(pass.regular, lowering_of(options.lowering, pass.target.device));
  if (options.plan_batch > 0) pass.batch = options.plan_batch;
  pass.dry_run = options.dry_run;
  pass.log = &log;

  SL_ASSIGN(graph::OnnxModel model, graph::OnnxModel::load(options.model));
  SL_TRY(check_external(model, options));
  const graph::Outcome outcome = model.replace(pass);
  Status saved;
  const bool write = !outcome.error && !options.dry_run;
  if (write) saved = model.save(options.out);
  if (options.json) {
    auto report =
        nlohmann::ordered_json::parse(graph::to_json(outcome.report, outcome.error ? &*outcome.error : nullptr));
    report["model"] = options.model;
    report["out"] = write && saved.ok() ? nlohmann::ordered_json(options.out) : nlohmann::ordered_json(nullptr);
    std::fputs(dump_json(report, true).c_str(), stdout);
  } else if (!outcome.report.nodes.empty() || !outcome.error) {
    std::fputs(text(outcome.report, !write || !saved.ok()).c_str(), stdout);
    if (write && saved.ok()) std::printf("written to %s\n", options.out.c_str());
  }
  if (outcome.error) return Error{outcome.error->code, outcome.error->message};
  SL_TRY(saved);
  return exit_done;
}

}  // namespace
}  // namespace sl::tool

int main(int argc, char** argv) {
  using namespace sl::tool;
  try {
    const Parsed parsed = parse_command_line(argc, argv);
    if (parsed.exit) return *parsed.exit;
    const bool suite = parsed.options.command == Command::suite;
    if (!suite && parsed.options.command != Command::rewrite) {
      complain("this program is `sluice rewrite`, and `sluice suite` of ONNX models");
      return exit_usage;
    }
    const sl::Result<int> code = suite ? make_suite(parsed.options, read_onnx_suite) : rewrite(parsed.options);
    progress("");
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      complain("cannot write to stdout");
      return exit_environment;
    }
    return code.ok() ? code.value() : fail({code.error().code, printable(code.error().message)});
  } catch (const std::exception& error) {
    complain(std::string("internal error: ") + error.what());
    return exit_environment;
  }
}
