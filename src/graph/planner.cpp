#include "graph/planner.hpp"

#include <utility>

namespace sl::graph {

Status PlannerRegistry::add(std::string op, Planner planner) {
  if (op.empty()) return Error{Code::invalid, "a planner's op is empty, must name an operator"};
  if (!planner.plan || !planner.lower)
    return Error{Code::invalid, "the planner of " + op + " lacks a callback, must have plan and lower"};
  if (find(op) != nullptr) return Error{Code::invalid, op + " has a planner already"};
  rows_.push_back({std::move(op), std::move(planner)});
  return {};
}

const Planner* PlannerRegistry::find(std::string_view op) const {
  for (const Row& row : rows_) {
    if (row.op == op) return &row.planner;
  }
  return nullptr;
}

}  // namespace sl::graph
