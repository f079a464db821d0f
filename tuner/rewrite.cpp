// What reads ONNX models is a program of its own: it needs libonnx and protobuf, which `sluice` must run without.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "store/posix_io.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/suite_make.hpp"
#include "tuner/support.hpp"

namespace sl::tool {
namespace {

int become_rewrite(const char* what, char** argv) {
  const auto folder = own_folder();
  if (!folder.ok()) return fail(folder.error());
  const std::filesystem::path program = *folder / "sluice-rewrite";
  execv(program.c_str(), argv);
  complain(std::string(what) + " needs " + program.string() + " (" + error_text(errno) +
           "); it is built where libonnx-dev and libprotobuf-dev are installed");
  return exit_environment;
}

}  // namespace

int rewrite_command(char** argv) { return become_rewrite("rewrite", argv); }

int suite_command(const Options& options, char** argv) {
  const auto& files = options.inputs;
  if (std::any_of(files.begin(), files.end(), is_onnx)) return become_rewrite("suite of an ONNX model", argv);
  const Result<int> code = make_suite(options, {});
  return code.ok() ? code.value() : fail({code.error().code, printable(code.error().message)});
}

}  // namespace sl::tool
