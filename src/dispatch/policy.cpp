#include <array>
#include <cstdint>
#include <utility>

#include "dispatch/dispatcher.hpp"

namespace sl {
namespace {

constexpr std::array<std::pair<Policy, std::string_view>, 5> policy_names = {{
    {Policy::first_use, "first_use"},
    {Policy::immediate, "immediate"},
    {Policy::background, "background"},
    {Policy::pinned, "pinned"},
    {Policy::off, "off"},
}};

}  // namespace

std::string_view name(Policy policy) {
  for (const auto& [value, text] : policy_names) {
    if (value == policy) return text;
  }
  return "?";
}

std::optional<Policy> parse_policy(std::string_view text) {
  for (const auto& [value, policy_name] : policy_names) {
    if (policy_name == text) return value;
  }
  return std::nullopt;
}

int alignment_class(const Tensors& tensors) {
  const auto bits = reinterpret_cast<std::uintptr_t>(tensors.x) | reinterpret_cast<std::uintptr_t>(tensors.w) |
                    reinterpret_cast<std::uintptr_t>(tensors.y) | reinterpret_cast<std::uintptr_t>(tensors.z);
  const std::uintptr_t lowest = (bits | 16) & (~(bits | 16) + 1);
  return lowest < 2 ? 2 : static_cast<int>(lowest);
}

}  // namespace sl
