#include "pipeline/environment.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>

namespace gearshift {

RunEnvironment environment_of(const DeviceProfile& device) {
  RunEnvironment environment;
  environment.device = device.name;
  environment.arch = device.arch;
  environment.cores = device.cores;
  if (device.platform != Platform::cpu) environment.memory_bytes = static_cast<int64_t>(device.memory_bytes);
  environment.driver = device.driver;
  environment.runtime = fmt::format("glibc {}", gnu_get_libc_version());
  return environment;
}

std::string default_mode(Platform platform) { return platform == Platform::cuda ? "graph" : "eager"; }

}  // namespace gearshift
