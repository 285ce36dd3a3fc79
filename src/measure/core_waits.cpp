#include "measure/core_waits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

namespace gearshift {

namespace {

constexpr const char* tasks = "/proc/self/task";

// A folder of this file system has two links more than folders in it.
uint64_t count_threads() {
  struct stat info {};
  return stat(tasks, &info) == 0 ? static_cast<uint64_t>(info.st_nlink) : 0;
}

}  // namespace

std::vector<uint64_t> CoreWaits::read_ns() {
  if (const uint64_t now = count_threads(); now != threads_) {
    close_all();
    open_all();
    threads_ = now;
  }
  std::vector<uint64_t> waits;
  for (const int file : files_) {
    char text[128];
    const ssize_t size = pread(file, text, sizeof text - 1, 0);
    unsigned long long ran = 0, waited = 0;
    if (size > 0) {
      text[size] = '\0';
      if (std::sscanf(text, "%llu %llu", &ran, &waited) != 2) waited = 0;
    }
    waits.push_back(waited);
  }
  return waits;
}

void CoreWaits::open_all() {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(tasks, ignored))
    paths.push_back(task.path().string() + "/schedstat");
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    if (const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC); file >= 0) files_.push_back(file);
  }
}

void CoreWaits::close_all() {
  for (const int file : files_) close(file);
  files_.clear();
}

}  // namespace gearshift
