#include "graph/transaction.hpp"

#include <string>

#include "graph/guard.hpp"

namespace sl::graph {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void Transaction::make_room() {
  const auto start = Clock::now();
  if (log_.size() == log_.capacity()) log_.reserve(log_.empty() ? 64 : 2 * log_.size());
  log_time_ += Clock::now() - start;
}

void Transaction::remember(const Edit& edit) noexcept {
  const auto start = Clock::now();
  edited_ = true;
  log_.push_back(edit);  // within the capacity that make_room() saw to
  log_time_ += Clock::now() - start;
}

Result<Node> Transaction::insert(Node before, const NewNode& node) {
  return guarded([&]() -> Result<Node> {
    make_room();
    Result<Node> made = editor_.insert(before, node);
    if (made.ok()) remember({Edit::Kind::insert, *made, {}, {}, {}, 0});
    return made;
  });
}

Status Transaction::rewire(const Use& use, Value from, Value to) {
  return guarded([&]() -> Status {
    make_room();
    Result<Place> place = editor_.rewire(use, from, to);
    if (!place.ok()) return std::move(place).error();
    remember({Edit::Kind::rewire, {}, use, from, to, *place});
    return {};
  });
}

Status Transaction::erase(Node node) {
  return guarded([&]() -> Status {
    make_room();
    SL_TRY(editor_.erase(node));
    remember({Edit::Kind::erase, node, {}, {}, {}, 0});
    return {};
  });
}

Status Transaction::undo(const Edit& edit) noexcept {
  return guarded([&]() -> Status {
    switch (edit.kind) {
      case Edit::Kind::insert:
        return editor_.undo_insert(edit.node);
      case Edit::Kind::rewire:
        return editor_.undo_rewire(edit.use, edit.from, edit.to, edit.place);
      case Edit::Kind::erase:
        break;
    }
    return editor_.undo_erase(edit.node);
  });
}

Status Transaction::undo_to(std::size_t mark) noexcept {
  const std::size_t all = log_.size();
  while (log_.size() > mark) {
    if (Status status = undo(log_.back()); !status.ok()) {
      return guarded([&]() -> Status {
        constexpr const char* kinds[] = {"insert", "rewire", "erase"};
        return Error{status.error().code,
                     std::string("undoing edit ") + std::to_string(log_.size()) + " of " + std::to_string(all) + " (" +
                         kinds[static_cast<std::size_t>(log_.back().kind)] + ") failed: " + status.error().message};
      });
    }
    log_.pop_back();
  }
  return {};
}

}  // namespace sl::graph
