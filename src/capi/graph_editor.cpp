#include "capi/graph_editor.hpp"

#include <string>
#include <utility>

#include "capi/errors.hpp"
#include "capi/versioned.hpp"

namespace sl::capi {
namespace {

using graph::Node;
using graph::Value;

thread_local std::string said;  // by the callback that is failing

std::uint64_t number(Node node) { return static_cast<std::uint64_t>(node); }
std::uint64_t number(Value value) { return static_cast<std::uint64_t>(value); }

static_assert(static_cast<int>(graph::Attribute::Kind::integer) == SLUICE_ATTRIBUTE_INTEGER &&
              static_cast<int>(graph::Attribute::Kind::reals) == SLUICE_ATTRIBUTE_REALS);

sluice_use use_of(const graph::Use& use) {
  return {use.kind == graph::Use::Kind::graph_output ? 1 : 0, number(use.user), use.index};
}

Error bad(const std::string& field, const char* right) {
  return {Code::invalid, "sluice_new_node." + field + " = NULL, must be " + right};
}

Result<graph::Attribute> read_attribute(const sluice_attribute& from, const std::string& field) {
  if (from.name == nullptr) return bad(field + ".name", "a name");
  graph::Attribute to;
  to.name = from.name;
  switch (from.kind) {
    case SLUICE_ATTRIBUTE_INTEGER:
      return graph::Attribute::of(from.name, from.integer);
    case SLUICE_ATTRIBUTE_REAL:
      return graph::Attribute::of(from.name, from.real);
    case SLUICE_ATTRIBUTE_TEXT:
      if (from.text == nullptr) return bad(field + ".text", "a text");
      return graph::Attribute::of(from.name, std::string(from.text));
    case SLUICE_ATTRIBUTE_INTEGERS:
      if (from.integers == nullptr && from.count > 0) return bad(field + ".integers", "count numbers");
      return graph::Attribute::of(from.name, std::vector<std::int64_t>(from.integers, from.integers + from.count));
    case SLUICE_ATTRIBUTE_REALS:
      if (from.reals == nullptr && from.count > 0) return bad(field + ".reals", "count numbers");
      return graph::Attribute::of(from.name, std::vector<double>(from.reals, from.reals + from.count));
    default:
      return Error{Code::invalid, "sluice_new_node." + field + ".kind = " + std::to_string(from.kind) +
                                      ", must be a sluice_attribute_kind (0 to 4)"};
  }
}

}  // namespace

void forget_callback_error() noexcept { said.clear(); }

Status callback_status(const char* callback, sluice_status status) {
  if (status == SLUICE_OK) {
    said.clear();  // of a callback that got over its own failure
    return {};
  }
  const bool known = status >= SLUICE_NOT_PREPARED && status <= SLUICE_INTERNAL;
  std::string message = std::string("callback ") + callback + " answered " + sluice_status_name(status);
  if (!said.empty()) message += ": " + std::exchange(said, {});
  return Error{known ? static_cast<Code>(status) : Code::internal, std::move(message)};
}

Status check_editor(const sluice_graph_editor& editor) {
  const std::pair<const char*, bool> required[] = {
      {"nodes", editor.nodes != nullptr},
      {"op", editor.op != nullptr},
      {"inputs", editor.inputs != nullptr},
      {"outputs", editor.outputs != nullptr},
      {"uses", editor.uses != nullptr},
      {"insert", editor.insert != nullptr},
      {"rewire", editor.rewire != nullptr},
      {"erase", editor.erase != nullptr},
      {"undo_insert", editor.undo_insert != nullptr},
      {"undo_rewire", editor.undo_rewire != nullptr},
      {"undo_erase", editor.undo_erase != nullptr},
  };
  for (const auto& [name, there] : required) {
    if (!there) return Error{Code::invalid, std::string("sluice_graph_editor.") + name + " = NULL, must be a function"};
  }
  return {};
}

Result<graph::NewNode> read_new_node(const sluice_new_node& from) {
  if (from.op == nullptr) return bad("op", "an operator");
  if (from.inputs == nullptr && from.input_count > 0) return bad("inputs", "input_count values");
  if (from.replaces == nullptr && from.replace_count > 0) return bad("replaces", "replace_count values");
  if (from.attributes == nullptr && from.attribute_count > 0) return bad("attributes", "attribute_count attributes");
  graph::NewNode to;
  to.op = from.op;
  to.name = from.name == nullptr ? "" : from.name;
  for (std::size_t i = 0; i < from.input_count; ++i) to.inputs.push_back(Value{from.inputs[i]});
  for (std::size_t i = 0; i < from.replace_count; ++i) to.replaces.push_back(Value{from.replaces[i]});
  for (std::size_t i = 0; i < from.attribute_count; ++i) {
    SL_ASSIGN(graph::Attribute made, read_attribute(from.attributes[i], "attributes[" + std::to_string(i) + "]"));
    to.attributes.push_back(std::move(made));
  }
  return to;
}

NewNodeView::NewNodeView(const graph::NewNode& node) {
  for (const Value value : node.inputs) inputs_.push_back(number(value));
  for (const Value value : node.replaces) replaces_.push_back(number(value));
  for (const graph::Attribute& from : node.attributes) {
    const bool integers = from.kind == graph::Attribute::Kind::integers;
    attributes_.push_back({from.name.c_str(), static_cast<std::int32_t>(from.kind), from.integer, from.real,
                           from.text.c_str(), from.integers.data(), from.reals.data(),
                           integers ? from.integers.size() : from.reals.size()});
  }
  view_.op = node.op.c_str();
  view_.name = node.name.c_str();
  view_.inputs = inputs_.data();
  view_.input_count = inputs_.size();
  view_.replaces = replaces_.data();
  view_.replace_count = replaces_.size();
  view_.attributes = attributes_.data();
  view_.attribute_count = attributes_.size();
}

Status CallbackEditor::nodes(std::vector<Node>& out) const {
  ids_.ids.clear();
  SL_TRY(callback_status("nodes", calls_.nodes(calls_.user, &ids_)));
  for (const std::uint64_t id : ids_.ids) out.push_back(Node{id});
  return {};
}

Result<std::string_view> CallbackEditor::op(Node node) const {
  said.clear();
  const char* op = calls_.op(calls_.user, number(node));
  if (op != nullptr) return std::string_view(op);
  if (!said.empty()) return callback_status("op", SLUICE_INTERNAL).error();
  return Error{Code::invalid, "callback op answered NULL: there is no node " + std::to_string(number(node))};
}

Status CallbackEditor::view(Node node, graph::NodeView& out) const {
  SL_ASSIGN(out.op, op(node));
  said.clear();
  const char* name = calls_.name == nullptr ? nullptr : calls_.name(calls_.user, number(node));
  if (name == nullptr && !said.empty()) return callback_status("name", SLUICE_INTERNAL);
  out.name = name == nullptr ? "" : name;
  const auto read = [&](const char* callback, auto* function, std::vector<Value>& to) -> Status {
    ids_.ids.clear();
    SL_TRY(callback_status(callback, function(calls_.user, number(node), &ids_)));
    to.clear();
    for (const std::uint64_t id : ids_.ids) to.push_back(Value{id});
    return {};
  };
  SL_TRY(read("inputs", calls_.inputs, out.inputs));
  return read("outputs", calls_.outputs, out.outputs);
}

Status CallbackEditor::uses(Value value, std::vector<graph::Use>& out) const {
  use_list_.uses.clear();
  SL_TRY(callback_status("uses", calls_.uses(calls_.user, number(value), &use_list_)));
  out.insert(out.end(), use_list_.uses.begin(), use_list_.uses.end());
  return {};
}

Result<Node> CallbackEditor::insert(Node before, const graph::NewNode& node) {
  NewNodeView view(node);
  std::uint64_t made = 0;
  SL_TRY(callback_status("insert", calls_.insert(calls_.user, number(before), view.get(), &made)));
  return Node{made};
}

Result<graph::Place> CallbackEditor::rewire(const graph::Use& use, Value from, Value to) {
  graph::Place place = 0;
  const sluice_use given = use_of(use);
  SL_TRY(callback_status("rewire", calls_.rewire(calls_.user, &given, number(from), number(to), &place)));
  return place;
}

Status CallbackEditor::erase(Node node) { return callback_status("erase", calls_.erase(calls_.user, number(node))); }

Status CallbackEditor::undo_insert(Node node) {
  return callback_status("undo_insert", calls_.undo_insert(calls_.user, number(node)));
}

Status CallbackEditor::undo_rewire(const graph::Use& use, Value from, Value to, graph::Place place) {
  const sluice_use given = use_of(use);
  return callback_status("undo_rewire", calls_.undo_rewire(calls_.user, &given, number(from), number(to), place));
}

Status CallbackEditor::undo_erase(Node node) {
  return callback_status("undo_erase", calls_.undo_erase(calls_.user, number(node)));
}

Status CallbackEditor::commit() {
  if (calls_.commit == nullptr) return {};
  return callback_status("commit", calls_.commit(calls_.user));
}

}  // namespace sl::capi

using namespace sl;
using namespace sl::capi;

extern "C" {

sluice_status sluice_id_list_add(sluice_id_list* list, uint64_t id) {
  return guarded([&]() -> sluice_status {
    if (list == nullptr) return invalid("list = NULL, must be the list that the callback was given");
    list->ids.push_back(id);
    return SLUICE_OK;
  });
}

sluice_status sluice_use_list_add(sluice_use_list* list, const sluice_use* use) {
  return guarded([&]() -> sluice_status {
    if (list == nullptr) return invalid("list = NULL, must be the list that the callback was given");
    if (use == nullptr) return invalid("use = NULL, must be a use");
    const auto kind = use->graph_output != 0 ? graph::Use::Kind::graph_output : graph::Use::Kind::operand;
    list->uses.push_back({kind, Node{use->user}, use->index});
    return SLUICE_OK;
  });
}

sluice_status sluice_graph_error(sluice_status status, const char* message) {
  try {
    said = message == nullptr ? "" : message;
  } catch (...) {
    said.clear();
  }
  return status;
}

}  // extern "C"
