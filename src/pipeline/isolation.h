// The first launch of a kernel happens in a child process: a crash, a hang or an illegal instruction ends the child,
// and becomes a quarantine.
#pragma once

#include <chrono>

#include "pipeline/session.h"

namespace gearshift {

struct ChildLaunch {
  std::string layer;  // row of the plan
  std::string kernel, tactic;  // several tactics with commas between them: one after the other in one child
  std::vector<int64_t> sizes;  // batch sizes, in this order
  int64_t weights = 0;         // N * K: what a row of the batch costs
};
struct ChildOutcome {
  bool possible = true;  // false: there was no child to launch in; `failure` says why
  int64_t m = 0;         // where it went wrong
  std::string failure;   // "" when every launch returned
};
// Tests bring their own.
using Isolation = std::function<ChildOutcome(const ChildLaunch&)>;

// Launches in the program gearshift_launch, which opens the same model with the same options. Not a fork: threads,
// devices and locks of this process stay out of it.
Isolation isolation_by_child(const Session& session);

// How long a launch may take: `base`, and for each row of the batch what even a slow kernel needs.
struct LaunchLimit {
  std::chrono::milliseconds base{10'000};
  double ms_per_row = 0;
};
// Runs `program` and follows what it writes: "pack M" before weights are packed for launches that start with M rows,
// "begin M" before a launch, "end M" behind either. A launch beyond its limit,
// and a start that takes longer than six times the base, ends the child.
ChildOutcome follow_child(const std::vector<std::string>& program, LaunchLimit limit);

// The installed program; "" where it is not found.
std::string find_launch_program();

}  // namespace gearshift
