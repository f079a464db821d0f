#include "jit/host_compiler_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

extern char** environ;

namespace sl {
namespace fs = std::filesystem;

Result<PrivateDirectory> PrivateDirectory::create() {
  std::error_code error;
  fs::path base = fs::temp_directory_path(error);
  if (error) base = "/tmp";
  std::string name = (base / "sluice-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    return Error{Code::environment, "cannot create a private directory " + name + ": " + std::strerror(errno) +
                                        "; point TMPDIR at a writable directory"};
  }
  return PrivateDirectory(name);
}

PrivateDirectory::~PrivateDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Status write_text_file(const fs::path& path, std::string_view content) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) return Error{Code::environment, "cannot write " + path.string() + ": " + std::strerror(errno)};
  return {};
}

std::optional<std::string> read_binary_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream content;
  content << in.rdbuf();
  if (in.bad()) return std::nullopt;
  return std::move(content).str();
}

std::optional<std::string> find_executable(const std::string& name, const std::string& search_path) {
  const auto runnable = [](const std::string& path) {
    struct stat info {};
    return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return runnable(name) ? std::optional(name) : std::nullopt;
  std::istringstream folders(search_path.empty() ? "/usr/local/bin:/usr/bin:/bin" : search_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder.empty()) continue;  // the current directory: never run a compiler from there by accident
    std::string path = folder + "/" + name;
    if (runnable(path)) return path;
  }
  return std::nullopt;
}

namespace {

/// The caller's environment with what would change the compiler's messages or temporary files replaced.
std::vector<std::string> child_environment(const fs::path& scratch) {
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("LC_ALL=") || text.starts_with("LANGUAGE=") || text.starts_with("TMPDIR=")) continue;
    variables.emplace_back(text);
  }
  variables.emplace_back("LC_ALL=C");
  variables.push_back("TMPDIR=" + scratch.string());
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

Result<pid_t> spawn(std::vector<std::string> argv, const fs::path& scratch, const std::string& output_file) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);

  // Default signal handling: a compiler driver that inherited an ignored SIGCHLD could not wait for its own children.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (const int number : {SIGCHLD, SIGPIPE, SIGINT, SIGTERM, SIGHUP}) sigaddset(&defaults, number);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP));

  std::vector<std::string> environment = child_environment(scratch);
  pid_t pid = -1;
  const int failure = posix_spawn(&pid, argv.front().c_str(), &actions, &attributes, pointers(argv).data(),
                                  pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return Error{Code::environment, "cannot start " + argv.front() + ": " + std::strerror(failure)};
  }
  return pid;
}

}  // namespace

Result<ProcessOutcome> run_process(const std::vector<std::string>& argv, const fs::path& scratch,
                                   std::chrono::milliseconds timeout) {
  // A file takes the output: no pipe to fill up, no thread to drain it. Unique within `scratch`.
  std::string output_file = (scratch / "output-XXXXXX").string();
  const int fd = mkstemp(output_file.data());
  if (fd < 0) return Error{Code::environment, "cannot create " + output_file + ": " + std::strerror(errno)};
  close(fd);
  SL_ASSIGN(const pid_t pid, spawn(argv, scratch, output_file));

  ProcessOutcome outcome;
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  for (int status = 0;;) {
    const pid_t done = waitpid(pid, &status, outcome.timed_out ? 0 : WNOHANG);
    if (done == pid) {
      outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      break;
    }
    if (done < 0 && errno != EINTR) {  // ECHILD: SIGCHLD is ignored, or the application waits for every child
      outcome.status_known = false;
      break;
    }
    if (!outcome.timed_out && std::chrono::steady_clock::now() >= deadline) {
      outcome.timed_out = true;
      kill(-pid, SIGKILL);
      continue;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  outcome.output = read_binary_file(output_file).value_or("");
  return outcome;
}

}  // namespace sl
