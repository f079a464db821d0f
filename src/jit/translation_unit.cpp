// The C++ text that a compiler gets: one Cfg struct and one kernel symbol for each specialisation.
#include <cstdint>
#include <limits>
#include <set>

#include "jit/compiler.hpp"

namespace sl {
namespace {

/// `int` where the value fits, so that index arithmetic stays 32-bit where it can.
std::string constant(const std::string& name, std::int64_t value) {
  using Int = std::numeric_limits<std::int32_t>;
  const bool narrow = value > Int::min() && value <= Int::max();  // -2147483648 is a long in C++, as a negated literal
  std::string literal = std::to_string(value) + (narrow ? "" : "LL");
  if (value == std::numeric_limits<std::int64_t>::min()) literal = "-9223372036854775807LL - 1";
  return std::string("  static constexpr ") + (narrow ? "int " : "long long ") + name + " = " + literal + ";\n";
}

}  // namespace

std::string translation_unit(std::span<const KernelSpec> specs) {
  std::set<std::string> sources, entries;
  for (const KernelSpec& spec : specs) sources.insert(spec.source);
  std::string text = "#include \"common/platform.cuh\"\n";
  for (const std::string& source : sources) text += "#include \"" + source + "\"\n";
  for (const KernelSpec& spec : specs) {
    const std::string entry = spec.entry();
    if (!entries.insert(entry).second) continue;
    text += "\n// " + spec.canonical() + "\nstruct Cfg_" + entry + " {\n";
    for (const auto& [name, value] : spec.constants) text += constant(name, value);
    text += constant("THREADS", spec.threads);
    text += "};\nSL_KERNEL_ENTRY(" + entry + ", " + spec.schedule + ", Cfg_" + entry + ", " +
            std::to_string(spec.min_blocks) + ")\n";
  }
  return text;
}

}  // namespace sl
