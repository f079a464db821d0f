#include "jit/compiler.hpp"

#include "core/digest.hpp"

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

std::vector<Result<Binary>> Compiler::compile(std::span<const KernelSpec> specs, const std::string& arch, int threads) {
  std::vector<Result<Binary>> results(specs.size(), Error{Code::internal, "not compiled"});
  compile(specs, arch, threads, [&](std::size_t i, Result<Binary> result) { results[i] = std::move(result); });
  return results;
}

}  // namespace sl
