// Callbacks and editors are other people's code and may throw; inside this room an exception is an error value.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "core/result.hpp"

namespace sl::graph {

// Short enough for std::string's own buffer: reporting that memory ran out must not need memory.
inline Error out_of_memory() { return {Code::out_of_memory, "out of memory"}; }

/// Runs `body`, which returns a Status or a Result.
template <class Body>
auto guarded(Body&& body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& exception) {
    try {
      return Error{Code::internal, std::string("threw: ") + exception.what()};
    } catch (...) {
      return out_of_memory();
    }
  } catch (...) {
    return Error{Code::internal, "threw"};
  }
}

}  // namespace sl::graph
