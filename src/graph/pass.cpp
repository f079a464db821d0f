#include "graph/pass.hpp"

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include "graph/check_lowering.hpp"
#include "graph/claims.hpp"
#include "graph/guard.hpp"
#include "graph/transaction.hpp"

namespace sl::graph {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Planned {
  Node node{};
  const Planner* planner = nullptr;
  Regular regular = Regular::yes;
  NodePlan plan;
};

std::string called(const NodeReport& node) { return node.name.empty() ? node.op : node.op + " \"" + node.name + "\""; }

class Pass {
 public:
  Pass(GraphEditor& editor, const PassOptions& options) : editor_(editor), options_(options), edits_(editor) {}

  void run(Outcome& outcome) noexcept {
    Status status = guarded([&] { return plan_then_rewrite(outcome.report); });
    if (status.ok()) return;
    outcome.error.emplace();
    ReplacementError& error = *outcome.error;
    error.code = status.error().code;
    error.message = std::move(status).error().message;
    error.failures = std::move(failures_);
    restore(error);
  }

 private:
  Status plan_then_rewrite(Report& report) {
    if (options_.planners == nullptr) return Error{Code::invalid, "PassOptions.planners = null, must be a registry"};
    report.device = options_.device.name;
    const auto start = Clock::now();
    const Status planned = plan_all(report);
    report.times.plan = since(start);
    SL_TRY(planned);
    SL_TRY(refuse_unservable(report));
    if (options_.dry_run) return {};

    const auto edited = Clock::now();
    Status rewritten = rewrite_all(report);
    report.times.rewrite = since(edited);
    report.times.undo_log = edits_.log_seconds();
    return rewritten;
  }

  // ---- planning ----

  Status plan_all(Report& report) {
    std::vector<Node> nodes;
    SL_TRY(editor_.nodes(nodes));
    report.graph_nodes = static_cast<std::int64_t>(nodes.size());
    for (const Node node : nodes) {
      SL_ASSIGN(const std::string_view op, editor_.op(node));
      const Planner* planner = options_.planners->find(op);
      if (planner == nullptr) continue;
      NodeReport row;
      row.op = op;
      SL_TRY(view_name(node, row));
      if (Status status = plan_one(node, *planner, row); !status.ok()) {
        return Error{status.error().code, "planning " + called(row) + ": " + status.error().message};
      }
      report.nodes.push_back(std::move(row));
    }
    claim_absorbed(report);
    return {};
  }

  Status view_name(Node node, NodeReport& row) {
    SL_TRY(editor_.view(node, view_));
    row.name = view_.name;
    return {};
  }

  Status plan_one(Node node, const Planner& planner, NodeReport& row) {
    SL_ASSIGN(NodePlan plan, guarded([&] { return planner.plan(editor_, node); }));
    if (plan.servable && planner.min_capability > 0 && !device_supports(planner.min_capability, options_.device)) {
      plan.servable = false;
      plan.reason = options_.device.name + " (" + options_.device.backend + ", capability " +
                    std::to_string(options_.device.capability) + "): the kernels need capability " +
                    std::to_string(planner.min_capability) + " of a CUDA device";
    }
    Regular regular = Regular::yes;
    if (options_.regular) {
      SL_ASSIGN(regular, guarded([&] { return options_.regular(editor_, node, plan); }));
    }
    planned_.push_back({node, &planner, regular, std::move(plan)});
    row_of_.emplace(static_cast<std::uint64_t>(node), planned_.size() - 1);
    classify(planned_.back(), row);
    return {};
  }

  static void classify(const Planned& planned, NodeReport& row) {
    const NodePlan& plan = planned.plan;
    row.signature = plan.signature;
    row.reason = plan.reason;
    row.rule = plan.rule;
    row.speedup = plan.speedup;
    row.absorbed = static_cast<int>(plan.absorbs.size());
    if (planned.regular == Regular::no) {
      row.verdict = Verdict::required;
      row.action = plan.servable ? Action::take : Action::fail;
    } else {
      row.verdict = plan.servable ? Verdict::optional : Verdict::unsupported;
      row.action = plan.servable && plan.take ? Action::take : Action::keep;
    }
    if (row.action != Action::take) row.absorbed = 0;
  }

  /// A node is replaced once. The first in order has it; who wants it too cannot be replaced.
  void claim_absorbed(Report& report) {
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      if (report.nodes[i].action == Action::take && !claims_.owner(planned_[i].node)) claim(i, report.nodes[i]);
    }
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      const auto owner = claims_.owner(planned_[i].node);
      if (!owner || *owner == i) continue;
      report.nodes[i].action = Action::absorbed;
      report.nodes[i].absorbed = 0;
      report.nodes[i].reason = "replaced with " + called(report.nodes[*owner]);
    }
  }

  void claim(std::size_t i, NodeReport& row) {
    if (claims_.claim(i, planned_[i].node, planned_[i].plan.absorbs)) return;
    give_up(row, "a node that its replacement would stand for is part of another replacement");
  }

  static void give_up(NodeReport& row, std::string reason) {
    row.action = row.verdict == Verdict::required ? Action::fail : Action::keep;
    row.reason = std::move(reason);
    row.absorbed = 0;
  }

  Status refuse_unservable(const Report& report) {
    for (const NodeReport& row : report.nodes) {
      if (row.action == Action::fail) failures_.push_back({row.op, row.name, row.signature, row.reason});
    }
    if (failures_.empty()) return {};
    std::string message =
        std::to_string(failures_.size()) +
        (failures_.size() == 1 ? " REQUIRED node cannot be served on " : " REQUIRED nodes cannot be served on ") +
        report.device + "; nothing was replaced";
    for (const Failure& failure : failures_) message += failure_text(failure);
    return Error{Code::unsupported, std::move(message)};
  }

  static std::string failure_text(const Failure& failure) {
    return "\n  " + (failure.name.empty() ? failure.op : "\"" + failure.name + "\"") + ": " + failure.signature + ": " +
           failure.reason;
  }

  // ---- rewriting ----

  Status rewrite_all(Report& report) {
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      NodeReport& row = report.nodes[i];
      if (row.action != Action::take) continue;
      const std::size_t before = edits_.mark();
      Status status = guarded([&] { return rewrite(planned_[i]); });
      if (status.ok()) continue;
      if (row.verdict == Verdict::required) return fail_required(row, status.error());
      if (const Status undone = undo_one(before); !undone.ok()) {
        return Error{undone.error().code, undone.error().message + "; undone because replacing " + called(row) +
                                              " failed: " + status.error().message};
      }
      row.action = Action::undone;
      row.absorbed = 0;
      row.reason = "replacing it failed: " + status.error().message;
      report.warnings.push_back(called(row) + " (" + row.signature + ") keeps its regular lowering: " + row.reason);
      if (options_.log != nullptr) options_.log->write(LogLevel::warning, report.warnings.back());
      SL_TRY(give_back(i, report));
    }
    if (Status status = guarded([&] { return editor_.commit(); }); !status.ok()) {
      return Error{status.error().code,
                   "the edits could not be made final, and were undone: " + status.error().message};
    }
    return {};
  }

  /// A replacement that was undone stands for nothing: the nodes that it would have absorbed are on their own again.
  Status give_back(std::size_t undone, Report& report) {
    const std::vector<Node>& absorbs = planned_[undone].plan.absorbs;
    claims_.release(planned_[undone].node, absorbs);
    for (const Node node : absorbs) {
      const auto found = row_of_.find(static_cast<std::uint64_t>(node));
      if (found == row_of_.end()) continue;
      const std::size_t i = found->second;
      NodeReport& row = report.nodes[i];
      if (row.action != Action::absorbed) continue;
      classify(planned_[i], row);
      if (row.action == Action::take && i > undone) claim(i, row);
      if (row.action == Action::take && i < undone)
        give_up(row, "the replacement that would have stood for it failed after its own turn");
      if (row.action != Action::fail) continue;
      return fail_required(row,
                           {Code::unsupported, row.reason + "; the replacement of " + called(report.nodes[undone]) +
                                                   ", which would have stood for it, failed"});
    }
    return {};
  }

  Status rewrite(const Planned& planned) {
    SL_ASSIGN(const NewNode made, planned.planner->lower(editor_, planned.node, planned.plan));
    SL_TRY(check_lowering(editor_, planned.node, planned.plan.absorbs, made));
    // Its inputs must be there, and every user comes after the last node that it stands for.
    const std::vector<Node>& absorbs = planned.plan.absorbs;
    SL_ASSIGN(const Node node, edits_.insert(absorbs.empty() ? planned.node : absorbs.back(), made));
    SL_TRY(editor_.view(node, view_));
    if (view_.outputs.size() != made.replaces.size()) {
      return Error{Code::internal, "the inserted node has " + std::to_string(view_.outputs.size()) +
                                       " outputs, must have " + std::to_string(made.replaces.size())};
    }
    for (std::size_t i = 0; i < made.replaces.size(); ++i) {
      if (made.replaces[i] == no_value) continue;
      uses_.clear();
      SL_TRY(editor_.uses(made.replaces[i], uses_));
      for (const Use& use : uses_) {
        SL_TRY(edits_.rewire(use, made.replaces[i], view_.outputs[i]));
      }
    }
    for (auto last = absorbs.rbegin(); last != absorbs.rend(); ++last) {
      SL_TRY(edits_.erase(*last));
    }
    return edits_.erase(planned.node);
  }

  Error fail_required(NodeReport& row, const Error& error) {
    row.action = Action::fail;
    row.reason = error.message;
    failures_.push_back({row.op, row.name, row.signature, error.message});
    return {error.code, "REQUIRED node could not be replaced; every edit was undone" + failure_text(failures_.back())};
  }

  // ---- undoing ----

  Status undo_one(std::size_t mark) noexcept {
    Status status = edits_.undo_to(mark);
    if (!status.ok()) undo_failed_ = true;
    return status;
  }

  void restore(ReplacementError& error) noexcept {
    if (edits_.mark() == 0 && !undo_failed_) {
      error.state = edits_.edited() ? GraphState::restored : GraphState::untouched;
      return;
    }
    Status status;
    if (undo_failed_) {  // the error is the undo's own
      error.state = GraphState::damaged;
      std::swap(error.undo_error, error.message);
    } else if (status = undo_one(0); status.ok()) {
      error.state = GraphState::restored;
      return;
    } else {
      error.state = GraphState::damaged;
      error.code = Code::internal;
      error.undo_error = std::move(status).error().message;
    }
    try {
      error.code = Code::internal;
      error.message = "the graph is damaged and must not be used: " + error.undo_error +
                      (error.message.empty() ? "" : "; undone because: " + error.message);
    } catch (...) {
      error.message.clear();  // undo_error and the state still say it
    }
  }

  GraphEditor& editor_;
  const PassOptions& options_;
  Transaction edits_;
  std::vector<Planned> planned_;                           // one a row of the report
  std::unordered_map<std::uint64_t, std::size_t> row_of_;  // by node
  Claims claims_;
  std::vector<Failure> failures_;
  NodeView view_;
  std::vector<Use> uses_;
  bool undo_failed_ = false;
};

}  // namespace

Outcome replace(GraphEditor& editor, const PassOptions& options) noexcept {
  Outcome outcome;
  Pass(editor, options).run(outcome);
  return outcome;
}

}  // namespace sl::graph
