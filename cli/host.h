// This machine as the options see it.
#pragma once

#include "verbs.h"

namespace gearshift::cli {

// The CPU after GEARSHIFT_MAX_ISA.
inline Result<DeviceProfile> host_of(const Call& call) {
  const auto limit = call.options.find("max-isa");
  return host_cpu(limit == call.options.end() ? "" : limit->second.values.back());
}

}  // namespace gearshift::cli
