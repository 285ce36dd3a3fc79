// How much of the machine this process may use: affinity, and the CPU and memory limits of its control group.
#pragma once

#include <cstdint>
#include <string>

namespace gearshift {

// Cores that this process may run on, at least 1.
int usable_cores();
// Physical memory or the control group's limit, whichever is less; 0 unknown.
uint64_t usable_memory_bytes();

// Limits of a control group and all its ancestors; 0 where there is none.
struct CgroupLimits {
  int cores = 0;  // quota / period, rounded up
  uint64_t memory_bytes = 0;
};
// `root`: where cgroups are mounted; `membership`: the text of /proc/self/cgroup (version 1, 2 or both).
CgroupLimits cgroup_limits(const std::string& root, const std::string& membership);

}  // namespace gearshift
