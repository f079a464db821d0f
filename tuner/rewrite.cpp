// `sluice rewrite` is a program of its own: it needs libonnx and protobuf, which `sluice` must run without.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "store/posix_io.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/support.hpp"

namespace sl::tool {

int rewrite_command(char** argv) {
  const auto folder = own_folder();
  if (!folder.ok()) return fail(folder.error());
  const std::filesystem::path program = *folder / "sluice-rewrite";
  execv(program.c_str(), argv);
  complain("rewrite needs " + program.string() + " (" + error_text(errno) +
           "); it is built where libonnx-dev and libprotobuf-dev are installed");
  return exit_environment;
}

}  // namespace sl::tool
