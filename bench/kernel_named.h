// Kernels of the registry by name, and lists of names on a command line.
#pragma once

#include <string>
#include <string_view>

#include "gearshift/kernel.h"
#include "read_floor.h"

namespace gearshift::bench {

inline const Kernel& kernel_named(std::string_view name) {
  const Kernel* kernel = builtin_registry().find_kernel(name, Platform::cuda);
  if (kernel == nullptr) fail({ErrorCode::usage, std::string(name), "no such kernel", "", {}, {}});
  return *kernel;
}

// Whether a list with commas has the word; an empty one has all.
inline bool listed(const std::string& list, std::string_view word) {
  return list.empty() || ("," + list + ",").find("," + std::string(word) + ",") != std::string::npos;
}

}  // namespace gearshift::bench
