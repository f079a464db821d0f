#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "jit/cubin.hpp"
#include "jit/nvrtc.hpp"

namespace sl {
namespace {

// No toolkit header is included, so no include path is given. -v puts what is spilled into the log. -minimal
// leaves out declarations that kernels have no use for, textures and the like: the same machine code, and its front
// end, which takes one program at a time, ends some 10 ms earlier. It comes last, since NVRTC has it from 12.4 on only.
constexpr std::array<const char*, 4> common_options{"--std=c++17", "-default-device", "--ptxas-options=-v", "-minimal"};

bool knows_minimal(const NvrtcLibrary& library) {
  return library.major > 12 || (library.major == 12 && library.minor >= 4);
}

class Program {
 public:
  explicit Program(const NvrtcLibrary& library) : library_(library) {}
  ~Program() {
    if (program != nullptr) library_.destroy(&program);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  std::string log() const { return text(library_.log_size, library_.log); }
  std::string text(int (*size)(NvrtcProgram, std::size_t*), int (*get)(NvrtcProgram, char*)) const {
    std::size_t bytes = 0;
    if (program == nullptr || size(program, &bytes) != 0 || bytes == 0) return {};
    std::string result(bytes, '\0');
    if (get(program, result.data()) != 0) return {};
    return result;
  }

  NvrtcProgram program = nullptr;

 private:
  const NvrtcLibrary& library_;
};

/// The headers of kernels/ as NVRTC takes them: zero-ended copies and the names they are included by.
struct Headers {
  std::vector<std::string> storage;
  std::vector<const char*> names, contents;
  Headers() {
    const auto paths = kernel_source_paths();
    storage.reserve(2 * paths.size());
    for (const std::string_view path : paths) {
      names.push_back(storage.emplace_back(path).c_str());
      contents.push_back(storage.emplace_back(kernel_source(path)).c_str());
    }
  }
};

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
  return text;
}

/// The number that stands before `unit`, as in "36 bytes spill loads"; 0 where the unit is absent.
int number_before(std::string_view log, std::string_view unit) {
  const auto at = log.find(unit);
  if (at == std::string_view::npos) return 0;
  auto begin = at;
  while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
  int value = 0;
  std::from_chars(log.data() + begin, log.data() + at, value);
  return value;
}

}  // namespace

std::span<const char* const> nvrtc_options() { return common_options; }

std::optional<int> spilled(std::string_view log, std::string_view entry) {
  const std::string head = "Function properties for " + std::string(entry) + "\n";
  const auto at = log.find(head);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view line = log.substr(at + head.size(), log.find('\n', at + head.size()) - at - head.size());
  if (line.find(" bytes spill") == std::string_view::npos) return std::nullopt;
  return std::max(number_before(line, " bytes spill stores"), number_before(line, " bytes spill loads"));
}

Result<Binary> nvrtc_compile(const NvrtcLibrary& library, const std::string& source, const std::string& entry,
                             const std::string& arch) {
  const Headers headers;
  const std::string arch_option = "--gpu-architecture=" + arch;
  std::vector<const char*> options{arch_option.c_str()};
  options.insert(options.end(), common_options.begin(), common_options.end() - (knows_minimal(library) ? 0 : 1));

  Program program(library);
  const auto failed = [&](const char* call, int result) {
    std::string shown;
    for (const char* const option : options) shown += std::string(shown.empty() ? "" : " ") + option;
    std::string log = without_end(program.log());
    return Error{Code::compile, std::string(call) + " of " + entry + " for " + arch +
                                    " failed: " + library.error_string(result) + "; NVRTC " + library.version_text() +
                                    " at " + library.path + ", builtins " +
                                    (library.builtins.empty() ? "not beside it" : library.builtins) +
                                    ", options: " + shown + (log.empty() ? "" : "; log:\n" + log)};
  };
  if (const int result =
          library.create(&program.program, source.c_str(), (entry + ".cu").c_str(),
                         static_cast<int>(headers.names.size()), headers.contents.data(), headers.names.data());
      result != 0)
    return failed("nvrtcCreateProgram", result);
  if (const int result = library.compile(program.program, static_cast<int>(options.size()), options.data());
      result != 0)
    return failed("nvrtcCompileProgram", result);

  Binary binary;
  const bool ptx = arch.starts_with("compute_");
  binary.format = ptx ? Binary::Format::ptx : Binary::Format::cubin;
  binary.code =
      ptx ? without_end(program.text(library.ptx_size, library.ptx)) : program.text(library.cubin_size, library.cubin);
  if (binary.code.empty())
    return Error{Code::compile, "NVRTC " + library.version_text() + " at " + library.path + " gave no " +
                                    (ptx ? "PTX" : "cubin") + " for " + entry + " and " + arch};
  binary.entry = entry;
  binary.arch = arch;
  binary.compiler = "nvrtc " + library.version_text();
  if (!ptx) {
    const CubinResources resources = cubin_resources(binary.code, entry);
    binary.registers = resources.registers;
    binary.static_smem = resources.static_smem;
    binary.spill_bytes = spilled(program.log(), entry).value_or(resources.stack);
  }
  return binary;
}

}  // namespace sl
