// Which replacement a node is part of: it is replaced once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/editor.hpp"

namespace sl::graph {

class Claims {
 public:
  /// Claims the node and those that it absorbs for a row; false, and nothing is claimed, where another has one of them.
  bool claim(std::size_t row, Node node, const std::vector<Node>& absorbs) {
    if (owners_.contains(key(node))) return false;
    for (const Node absorbed : absorbs) {
      if (owners_.contains(key(absorbed))) return false;
    }
    owners_.emplace(key(node), row);
    for (const Node absorbed : absorbs) owners_.emplace(key(absorbed), row);
    return true;
  }

  /// Takes back a claim that was granted. Allocates nothing.
  void release(Node node, const std::vector<Node>& absorbs) noexcept {
    owners_.erase(key(node));
    for (const Node absorbed : absorbs) owners_.erase(key(absorbed));
  }

  std::optional<std::size_t> owner(Node node) const {
    const auto found = owners_.find(key(node));
    return found == owners_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  static std::uint64_t key(Node node) { return static_cast<std::uint64_t>(node); }
  std::unordered_map<std::uint64_t, std::size_t> owners_;
};

}  // namespace sl::graph
