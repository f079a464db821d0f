// `sluice rewrite` is a program of its own: it needs libonnx and protobuf, which `sluice` must run without.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "store/posix_io.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"

namespace sl::tool {

int rewrite_command(char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path program = self.parent_path() / "sluice-rewrite";
  if (error) {
    complain("cannot find this program's own folder: " + error.message());
    return exit_environment;
  }
  execv(program.c_str(), argv);
  complain("rewrite needs " + program.string() + " (" + error_text(errno) +
           "); it is built where libonnx-dev and libprotobuf-dev are installed");
  return exit_environment;
}

}  // namespace sl::tool
