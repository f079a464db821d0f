// What the pass needs of a graph: looking, three edits, and the exact undo of each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace sl::graph {

/// Handles that an editor gives out. They stay valid while what they name is in the graph, and after an undo brought it
/// back.
enum class Node : std::uint64_t {};
enum class Value : std::uint64_t {};
constexpr Value no_value{~std::uint64_t{0}};  ///< an optional input or output that is left out

/// One place that reads a value: operand `index` of a node, or output `index` of the graph.
struct Use {
  enum class Kind : std::uint8_t { operand, graph_output };
  Kind kind = Kind::operand;
  Node user{};  ///< unused for graph_output
  std::uint64_t index = 0;
  friend bool operator==(const Use&, const Use&) = default;
};

/// A named value of one kind; the fields of the other kinds are empty. (Not a std::variant: copying libstdc++ 12's one
/// is undefined where memory runs out, as it then resets an alternative that was never made.)
struct Attribute {
  enum class Kind : std::uint8_t { integer, real, text, integers, reals };
  std::string name;
  Kind kind = Kind::integer;
  std::int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  friend bool operator==(const Attribute&, const Attribute&) = default;

  static Attribute of(std::string name, std::int64_t value);
  static Attribute of(std::string name, double value);
  static Attribute of(std::string name, std::string value);
  static Attribute of(std::string name, std::vector<std::int64_t> value);
  static Attribute of(std::string name, std::vector<double> value);
};

struct NodeView {
  std::string op, name;
  std::vector<Value> inputs, outputs;
};

/// A node to be inserted. Its output i takes the place of the existing value replaces[i]: once that has no use and its
/// producer is erased, output i may take over its name and type.
struct NewNode {
  std::string op, name;
  std::vector<Value> inputs;
  std::vector<Value> replaces;
  std::vector<Attribute> attributes;
};

/// What a rewire tells its undo: where in the old value's list of uses the use stood. Its meaning is the editor's own.
using Place = std::uint64_t;

/// A graph that can be looked at and edited. Not thread-safe.
///
/// Every edit is all or nothing: one that returns an error, or throws, has changed nothing. The pass undoes edits in
/// the reverse order of their making and never undoes anything else; an undo restores order, names, uses, outputs and
/// metadata exactly. Undo needs no memory that the edit has not set aside: it must work when memory has run out.
class GraphEditor {
 public:
  virtual ~GraphEditor() = default;

  // ---- looking: nothing changes ----
  /// Every node, in order, those of nested graphs included.
  virtual Status nodes(std::vector<Node>& out) const = 0;
  /// The operator that planners are registered for: "Conv", or "domain::Op". Valid until the next edit.
  virtual Result<std::string_view> op(Node) const = 0;
  virtual Status view(Node, NodeView& out) const = 0;
  /// Who reads a value, in order.
  virtual Status uses(Value, std::vector<Use>& out) const = 0;

  // ---- editing ----
  /// Puts a node just before `before`, in the same (nested) graph, with fresh output values.
  virtual Result<Node> insert(Node before, const NewNode&) = 0;
  /// Lets the use of `from` read `to`.
  virtual Result<Place> rewire(const Use&, Value from, Value to) = 0;
  /// Takes a node out of the graph, remembering it. An error where an output of it still has a use.
  virtual Status erase(Node) = 0;

  virtual Status undo_insert(Node) = 0;
  virtual Status undo_rewire(const Use&, Value from, Value to, Place) = 0;
  virtual Status undo_erase(Node) = 0;

  /// The edits are final: what erase() remembered may be dropped. An error has changed nothing; the pass then undoes
  /// every edit.
  virtual Status commit() = 0;
};

}  // namespace sl::graph
