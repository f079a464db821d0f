// `sluice report` is a script: its pictures are matplotlib's, and `sluice` must run without Python.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "store/posix_io.hpp"
#include "tuner/commands.hpp"
#include "tuner/exit_code.hpp"
#include "tuner/print.hpp"
#include "tuner/support.hpp"

namespace sl::tool {
namespace {

namespace fs = std::filesystem;

/// The scripts' folder: where an installation has it, or a build.
Result<fs::path> scripts() {
  SL_ASSIGN(const fs::path folder, own_folder());
  std::string looked;
  for (const char* place : {SLUICE_REPORT_DIR, "share/sluice/report"}) {
    fs::path at = (folder / place).lexically_normal();
    std::error_code error;
    if (fs::exists(at / "__main__.py", error)) return at;
    looked += (looked.empty() ? "" : " and ") + at.string();
  }
  return Error{Code::environment, "report needs its scripts, which are not at " + looked + "; install Sluice anew"};
}

Result<std::vector<std::string>> words_of(const Options& o) {
  SL_ASSIGN(const fs::path script, scripts());
  SL_ASSIGN(const Environment environment, environment_of(o));
  std::vector<std::string> words = {"python3", "-B", script.string(), "--out=" + o.out};
  if (!environment.routing_table.empty()) words.push_back("--routing-table=" + environment.routing_table);
  if (o.json) words.emplace_back("--json");
  words.emplace_back("--");
  words.insert(words.end(), o.inputs.begin(), o.inputs.end());
  return words;
}

}  // namespace

int report_command(const Options& options) {
  auto words = words_of(options);
  if (!words.ok()) return fail(words.error());
  std::vector<char*> argv;
  for (std::string& word : *words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  complain("report needs python3 with matplotlib (Debian: python3-matplotlib): python3: " + error_text(errno));
  return exit_environment;
}

}  // namespace sl::tool
