// KernelSpec's canonical text and symbol.
#include "core/digest.hpp"
#include "jit/compiler.hpp"

namespace sl {

std::string KernelSpec::canonical() const {
  std::string text = "schedule=" + schedule + ";source=" + source + ";threads=" + std::to_string(threads) +
                     ";min_blocks=" + std::to_string(min_blocks);
  for (const auto& [name, value] : constants) text += ";" + name + "=" + std::to_string(value);
  return text;
}

std::string KernelSpec::entry() const {
  return "sluice_" + schedule + "_" + digest_text(canonical()).hex().substr(0, 16);
}

}  // namespace sl
