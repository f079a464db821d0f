#include "tuner/child.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

extern char** environ;

namespace sl::tool {
namespace {

Error cannot_start(int error) { return {Code::environment, "cannot start a process: " + error_text(error)}; }

/// A file without a name that holds `text`, read from its start: no pipe that could be full.
Result<Fd> file_of(const std::string& text) {
  Fd file(::memfd_create("sluice", MFD_CLOEXEC));
  if (!file.ok()) return cannot_start(errno);
  if (const int error = write_fully(file.get(), text); error != 0) return cannot_start(error);
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return cannot_start(errno);
  return file;
}

}  // namespace

Result<Child> start_child(std::vector<std::string> words, const std::string* input) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return cannot_start(errno);
  Child child;
  child.report = Fd(ends[0]);
  const Fd theirs(ends[1]);
  Fd told;
  if (input != nullptr) {
    SL_ASSIGN(told, file_of(*input));
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  if (told.ok()) posix_spawn_file_actions_adddup2(&files, told.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, theirs.get(), STDOUT_FILENO);
  const int failed = posix_spawn(&child.pid, "/proc/self/exe", &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return cannot_start(failed);
  return child;
}

int wait_for(const Child& child) {
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

Status end_with(int parent) {
  if (parent == 0) return {};
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && ::getppid() == parent) return {};
  return Error{Code::environment, "the process that started this one is gone"};
}

}  // namespace sl::tool
