#include "graph_onnx/child.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <fstream>

#include "store/posix_io.hpp"

namespace sl::graph {
namespace {

constexpr char done = 'd', failed = 'f';
constexpr rlim_t cpu_seconds = 60;
constexpr rlim_t more_memory = rlim_t{4} << 30;  // twice the largest model that protobuf can hold

Error system_error(const char* what, int error) {
  return {Code::environment, std::string("shape inference: ") + what + ": " + error_text(error)};
}

/// Bounds what the child may map beyond what it was forked with. Where that cannot be read, it stays unbounded.
void limit_memory() {
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  const long page = sysconf(_SC_PAGESIZE);
  if (!(sizes >> pages) || page <= 0) return;
  const rlim_t all = pages * static_cast<rlim_t>(page) + more_memory;
  const rlimit memory{all, all};
  (void)setrlimit(RLIMIT_AS, &memory);
}

[[noreturn]] void run_child(const std::function<bool(std::string&)>& work, int to) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) std::signal(signal, SIG_DFL);
  const rlimit cpu{cpu_seconds, cpu_seconds + 1}, core{0, 0};
  (void)setrlimit(RLIMIT_CPU, &cpu);
  (void)setrlimit(RLIMIT_CORE, &core);
  limit_memory();
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) (void)dup2(null, STDERR_FILENO);
  std::string answer;
  char verdict = failed;
  try {
    verdict = work(answer) ? done : failed;
  } catch (const std::exception& exception) {
    answer = exception.what();
  } catch (...) {
    answer = "threw";
  }
  const bool sent = write_fully(to, std::string_view(&verdict, 1)) == 0 && write_fully(to, answer) == 0;
  _exit(sent ? 0 : 1);
}

int read_all(int from, std::string& out) {
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(from, buffer, sizeof buffer);
    if (got == 0) return 0;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    out.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

Result<std::string> in_child(const std::function<bool(std::string&)>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("pipe", errno);
  Fd from(ends[0]), to(ends[1]);
  const pid_t child = fork();
  if (child < 0) return system_error("fork", errno);
  if (child == 0) run_child(work, to.get());
  to.close();
  std::string answer;
  const int error = read_all(from.get(), answer);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (error != 0) return system_error("read", error);
  if (WIFSIGNALED(status))
    return Error{Code::invalid, std::string("shapes cannot be inferred: libonnx died of signal ") +
                                    std::to_string(WTERMSIG(status)) + " on the model"};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty())
    return Error{Code::invalid, "shapes cannot be inferred: libonnx gave up on the model"};
  if (answer[0] != done) return Error{Code::invalid, "shapes cannot be inferred: " + answer.substr(1)};
  answer.erase(0, 1);
  return answer;
}

}  // namespace sl::graph
