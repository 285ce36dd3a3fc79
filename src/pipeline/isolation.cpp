#include "pipeline/isolation.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/text.h"

extern "C" char** environ;

namespace gearshift {

namespace {

constexpr const char* program_name = "gearshift_launch";
// A portable kernel on one busy core does more products than this in a millisecond.
constexpr double slowest_macs_per_ms = 1e5;

// Options that name files to write or to show, or that the child must not follow.
bool is_for_the_child(const std::string& option) {
  constexpr std::string_view others[] = {"json",    "html",        "output",      "input",     "explain",
                                         "lock",    "store",       "quiet",       "isolation", "layers",
                                         "verbose", "time-budget", "memory-limit"};
  return std::find(std::begin(others), std::end(others), option) == std::end(others);
}

// A pipe whose ends do not leak into other children.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
};

pid_t spawn(const std::vector<std::string>& program, int output) {
  std::vector<char*> words;
  for (const std::string& word : program) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = -1;
  const int error = posix_spawn(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  errno = error;
  return error == 0 ? child : -1;
}

// What a child says, line by line.
struct Protocol {
  std::string text;
  int64_t running = 0;  // the batch size of a launch that has begun and not ended, or that weights are packed for
  bool begun = false, packing = false;

  // True: something was said.
  bool hear(const char* bytes, size_t count) {
    text.append(bytes, count);
    bool heard = false;
    for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1)) {
      const std::string line = text.substr(0, end);
      const size_t blank = line.find(' ');
      const auto m = blank == std::string::npos ? std::nullopt : parse_integer(line.substr(blank + 1));
      if (!m) continue;
      if (line.starts_with("begin ")) begun = true;
      packing = line.starts_with("pack ");
      if (packing || line.starts_with("begin ")) running = *m;
      if (line.starts_with("end ")) running = 0;
      heard = true;
    }
    return heard;
  }
};

std::string folder_of(const std::string& file) { return std::filesystem::path(file).parent_path().string(); }

}  // namespace

std::string find_launch_program() {
  std::vector<std::string> folders;
  std::error_code ignored;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_launch_program), &info) != 0 && info.dli_fname != nullptr)
    folders.push_back(folder_of(std::filesystem::weakly_canonical(info.dli_fname, ignored).string()));
  folders.push_back(folder_of(std::filesystem::read_symlink("/proc/self/exe", ignored).string()));
  for (const std::string& folder : folders) {
    for (const char* below : {"/", "/../", "/../libexec/gearshift/"}) {
      const std::string file = folder + below + program_name;
      if (access(file.c_str(), X_OK) == 0) return file;
    }
  }
  const std::string installed = std::string(GEARSHIFT_LIBEXEC) + "/" + program_name;
  return access(installed.c_str(), X_OK) == 0 ? installed : "";
}

ChildOutcome follow_child(const std::vector<std::string>& program, LaunchLimit limit) {
  ChildOutcome outcome;
  Pipe pipe;
  const pid_t child = pipe.ends[0] < 0 ? -1 : spawn(program, pipe.ends[1]);
  if (child < 0) {
    outcome.possible = false;
    outcome.failure = fmt::format("{} cannot be started: {}", program.front(), std::strerror(errno));
    return outcome;
  }
  pipe.close_end(1);
  using Clock = std::chrono::steady_clock;
  Protocol protocol;
  auto allowed = 6 * limit.base;
  auto deadline = Clock::now() + allowed;
  bool late = false;
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd event{pipe.ends[0], POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&event, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0 && left > 60'000) continue;
    if (ready == 0) {
      late = true;
      kill(child, SIGKILL);
      break;
    }
    char bytes[4096];
    const ssize_t count = read(pipe.ends[0], bytes, sizeof bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    if (!protocol.hear(bytes, static_cast<size_t>(count))) continue;
    const double rows_ms = limit.ms_per_row * static_cast<double>(protocol.running);
    allowed = limit.base + std::chrono::milliseconds(static_cast<int64_t>(rows_ms));
    deadline = Clock::now() + allowed;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.m = protocol.running;
  const std::string where =
      fmt::format("in a child process ({}m = {})", protocol.packing ? "packing weights, " : "", outcome.m);
  if (late && protocol.running != 0) {
    outcome.failure =
        fmt::format("did not return within {:g} s {}", static_cast<double>(allowed.count()) / 1000, where);
  } else if (!late && WIFSIGNALED(status) && protocol.running != 0) {
    outcome.failure = fmt::format("ended by signal {} ({}) {}", WTERMSIG(status), strsignal(WTERMSIG(status)), where);
  } else if (!late && protocol.running != 0) {
    outcome.failure = fmt::format("ended with exit code {} {}", WEXITSTATUS(status), where);
  } else if (late || !WIFEXITED(status) || WEXITSTATUS(status) != 0 || !protocol.begun) {
    outcome.possible = false;
    outcome.failure = late ? "the child process did not get to the launch"
                           : fmt::format("the child process ended before the launch (status {})", status);
  }
  return outcome;
}

Isolation isolation_by_child(const Session& session) {
  if (!session.settings().isolation) return nullptr;
  return [&session](const ChildLaunch& launch) {
    const std::string program = find_launch_program();
    if (program.empty()) return ChildOutcome{false, 0, fmt::format("the program {} is not installed", program_name)};
    std::string sizes;
    for (const int64_t m : launch.sizes) sizes += (sizes.empty() ? "" : ",") + std::to_string(m);
    const std::string word = launch.tactic.empty() ? launch.kernel : launch.kernel + "/" + launch.tactic;
    std::vector<std::string> words = {program, session.model(), launch.layer, word, sizes};
    for (const auto& [option, value] : session.options()) {
      if (!is_for_the_child(option)) continue;
      for (const std::string& one : value.values) words.push_back(option + "=" + one);
    }
    LaunchLimit limit;
    limit.base = std::chrono::milliseconds(static_cast<int64_t>(session.settings().launch_limit_s * 1000));
    limit.ms_per_row = static_cast<double>(launch.weights) / slowest_macs_per_ms;
    return follow_child(words, limit);
  };
}

}  // namespace gearshift
