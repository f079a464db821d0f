// Edits that can be taken back: a log of what was done, undone from its end.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "graph/editor.hpp"

namespace sl::graph {

/// Passes edits on to the editor and remembers them. Room in the log is made before an edit, so that an edit that was
/// made is always in it; undoing allocates nothing.
class Transaction {
 public:
  explicit Transaction(GraphEditor& editor) : editor_(editor) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  Result<Node> insert(Node before, const NewNode&);
  Status rewire(const Use&, Value from, Value to);
  Status erase(Node);

  std::size_t mark() const { return log_.size(); }
  bool edited() const { return edited_; }  ///< an edit was made, whether or not it was undone
  /// Undoes every edit after `mark`, the latest first. At the first undo that fails it stops: those before it rest on
  /// it. The message says which edit could not be undone, and of how many it was.
  Status undo_to(std::size_t mark) noexcept;

  /// Time spent in the log, not in the editor.
  double log_seconds() const { return std::chrono::duration<double>(log_time_).count(); }

 private:
  struct Edit {
    enum class Kind : std::uint8_t { insert, rewire, erase } kind;
    Node node{};
    Use use{};
    Value from{}, to{};
    Place place = 0;
  };
  void make_room();
  void remember(const Edit&) noexcept;
  Status undo(const Edit&) noexcept;

  GraphEditor& editor_;
  std::vector<Edit> log_;
  std::chrono::steady_clock::duration log_time_{};
  bool edited_ = false;
};

}  // namespace sl::graph
