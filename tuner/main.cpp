// The `sluice` program: `sluice --help` is its manual, docs/program.md the reference.
#include <cstdio>
#include <exception>

#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/options.hpp"
#include "tuner/print.hpp"

namespace {

int dispatch(const sl::tool::Options& options, char** argv) {
  using sl::tool::Command;
  switch (options.command) {
    case Command::devices:
      return sl::tool::devices_command(options);
    case Command::run:
      return sl::tool::run_command(options);
    case Command::explain:
      return sl::tool::explain_command(options);
    case Command::bench:
      return sl::tool::bench_command(options);
    case Command::tune:
      return sl::tool::tune_command(options);
    case Command::compile:
      return sl::tool::compile_command(options);
    case Command::merge:
      return sl::tool::merge_command(options);
    case Command::derive:
      return sl::tool::derive_command(options);
    case Command::fit:
      return sl::tool::fit_command(options);
    case Command::suite:
      return sl::tool::suite_command(options, argv);
    case Command::lint:
      return sl::tool::lint_command(options);
    case Command::report:
      return sl::tool::report_command(options);
    case Command::rewrite:
      return sl::tool::rewrite_command(argv);
    case Command::cache_ls:
    case Command::cache_verify:
    case Command::cache_prune:
    case Command::cache_clear:
    case Command::cache_path:
      return sl::tool::cache_command(options);
    case Command::env:
      return sl::tool::env_command(options);
    case Command::none:
      break;
  }
  sl::tool::complain("no command given (see `sluice --help`)");
  return sl::tool::exit_usage;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto parsed = sl::tool::parse_command_line(argc, argv);
    const int code = parsed.exit ? *parsed.exit : dispatch(parsed.options, argv);
    sl::tool::progress("");
    // A text larger than stdout's buffer has failed already; the flush of what is left succeeds.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      sl::tool::complain("cannot write to stdout");
      return sl::tool::exit_environment;
    }
    return code;
  } catch (const std::exception& error) {
    sl::tool::complain(std::string("internal error: ") + error.what());
    return sl::tool::exit_environment;
  }
}
