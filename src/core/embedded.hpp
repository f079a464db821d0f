// Files compiled into the library (kernel sources, routing tables, heuristics, device descriptions, what passed the
// sanitizers); made by cmake/embed.cmake.
#pragma once

#include <span>
#include <string_view>

namespace sl {

struct EmbeddedFile {
  std::string_view path;  ///< relative to the embedded folder
  std::string_view content;
};

std::span<const EmbeddedFile> embedded_kernel_source();
std::span<const EmbeddedFile> embedded_routing_json();
std::span<const EmbeddedFile> embedded_heuristic_json();
std::span<const EmbeddedFile> embedded_device_json();
std::span<const EmbeddedFile> embedded_sanitized_json();  ///< one file

}  // namespace sl
