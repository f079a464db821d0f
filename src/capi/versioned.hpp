// Structs of the C ABI that may grow: `size` comes first and says how much the caller knows.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "core/result.hpp"

namespace sl::capi {

/// Fills `known` (which holds the defaults) with the caller's struct. A shorter one, of an older caller, leaves the
/// defaults in what it lacks; a longer one, of a newer caller, is refused where its tail is not zero, because it asks
/// for something that is not known here. `least` is the size of the first version's indispensable fields. A size that
/// no version will have is garbage: it is refused before anything behind the known fields is read.
template <class T>
Status read_versioned(const T* given, std::size_t least, const char* type, T& known) {
  if (given->size < least) {
    return Error{Code::invalid, std::string(type) + ".size = " + std::to_string(given->size) + ", must be sizeof(" +
                                    type + ") = " + std::to_string(sizeof(T)) + " (the INIT macro sets it)"};
  }
  constexpr std::size_t growth = 1024;  // bytes that later versions may add
  if (given->size > sizeof(T) + growth) {
    return Error{Code::invalid, std::string(type) + ".size = " + std::to_string(given->size) + ", must be at most " +
                                    std::to_string(sizeof(T) + growth) + ": sizeof(" + type + ") is " +
                                    std::to_string(sizeof(T)) + " (the INIT macro sets it)"};
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(T); i < given->size; ++i) {
    if (bytes[i] != 0) {
      return Error{Code::invalid, std::string(type) + ".size = " + std::to_string(given->size) + ", and byte " +
                                      std::to_string(i) + " is set: this library knows " + std::to_string(sizeof(T)) +
                                      " bytes only; unknown fields must be zero"};
    }
  }
  std::memcpy(&known, given, std::min(given->size, sizeof(T)));
  known.size = sizeof(T);
  return {};
}

}  // namespace sl::capi
