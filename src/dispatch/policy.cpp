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

}  // namespace sl
