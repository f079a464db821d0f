#pragma once

#include <cstdlib>
#include <string_view>

namespace sl::test {

/// SLUICE_TEST_FULL=1: everything instead of a covering choice.
inline bool full_tests() {
  const char* value = std::getenv("SLUICE_TEST_FULL");
  return value != nullptr && *value != '\0' && std::string_view(value) != "0";
}

}  // namespace sl::test
