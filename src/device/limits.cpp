#include "device/limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/text.h"

namespace gearshift {

namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> out;
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

int quota_cores(int64_t quota, int64_t period) {
  if (quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, 1 << 20));
}

template <class T>
void tighten(T& limit, T found) {
  if (found > 0 && (limit == 0 || found < limit)) limit = found;
}

int64_t number_in(const std::string& path) {
  const auto text = words(file_text(path));
  return text.empty() ? 0 : parse_integer(text[0]).value_or(0);
}

void read_version2(const std::string& folder, CgroupLimits& limits) {
  const auto cpu = words(file_text(folder + "/cpu.max"));  // "max 100000" or "150000 100000"
  if (cpu.size() == 2)
    tighten(limits.cores, quota_cores(parse_integer(cpu[0]).value_or(0), parse_integer(cpu[1]).value_or(0)));
  tighten(limits.memory_bytes, static_cast<uint64_t>(std::max<int64_t>(0, number_in(folder + "/memory.max"))));
}

void read_version1(const std::string& folder, const std::vector<std::string>& controllers, CgroupLimits& limits) {
  for (const std::string& controller : controllers) {
    if (controller == "cpu") {
      tighten(limits.cores,
              quota_cores(number_in(folder + "/cpu.cfs_quota_us"), number_in(folder + "/cpu.cfs_period_us")));
    } else if (controller == "memory") {
      // "No limit" is a huge number there.
      const int64_t bytes = number_in(folder + "/memory.limit_in_bytes");
      if (bytes > 0 && bytes < (int64_t{1} << 60)) tighten(limits.memory_bytes, static_cast<uint64_t>(bytes));
    }
  }
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& root, const std::string& membership) {
  CgroupLimits limits;
  for (const std::string& line : split(membership, '\n')) {  // "hierarchy:controllers:/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    // Inside a container the path may name a group that only the host sees; the mount's root then holds the limits.
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      if (path == "/") path.clear();
      if (controllers.empty()) {
        read_version2(root + path, limits);
      } else {
        read_version1(root + "/" + controllers + path, split(controllers, ','), limits);
      }
      if (path.empty() || path.find('/') == std::string::npos) break;
    }
  }
  return limits;
}

int usable_cores() {
  int cores = 0;
  // The mask may be wider than cpu_set_t on machines with more than 1,024 processors.
  for (int processors = CPU_SETSIZE; processors <= 1 << 20 && cores == 0; processors *= 2) {
    cpu_set_t* set = CPU_ALLOC(processors);
    const size_t bytes = CPU_ALLOC_SIZE(processors);
    if (set != nullptr && sched_getaffinity(0, bytes, set) == 0) cores = CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
  }
  if (cores == 0) cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  const int quota = cgroup_limits("/sys/fs/cgroup", file_text("/proc/self/cgroup")).cores;
  return quota > 0 ? std::min(cores, quota) : cores;
}

uint64_t usable_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
  uint64_t bytes = pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : 0;
  tighten(bytes, cgroup_limits("/sys/fs/cgroup", file_text("/proc/self/cgroup")).memory_bytes);
  return bytes;
}

}  // namespace gearshift
