// Any text as a registry: an error of one line that is a usage error, or a registry in which every line has a kernel of
// its platform, and every name is found again.
#include <cstdlib>

#include "gearshift/kernel.h"
#include "kernel/cpu/lists.h"
#include "kernel/reference/reference.h"

// A registry that was read never asks for Gearshift's own kernels, which are left out of this program.
namespace gearshift {
std::vector<KernelList> cpu_lists() { return {}; }
const Kernel reference_kernel{};
}  // namespace gearshift

using namespace gearshift;

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<Registry> registry = read_registry({reinterpret_cast<const char*>(data), size}, "input");
  if (!registry.ok()) {
    require(registry.error().code == ErrorCode::usage);
    require(registry.error().message().find('\n') == std::string::npos);
    return 0;
  }
  for (const Fact& fact : registry->facts) require(registry->find_fact(fact.name) != nullptr);
  LayerSpec layer;
  const Assumptions none;
  for (const KernelList& list : registry->lists) {
    for (const ListEntry& line : list.entries) {
      require(line.kernel != nullptr && line.kernel->platform == list.platform);
      require(registry->find_kernel(line.kernel->name, list.platform) == line.kernel);
      DeviceProfile device;
      device.platform = list.platform;
      device.capability = 90;
      (void)refuses(*line.kernel, {layer, device, DType::bf16, none});
    }
  }
  return 0;
}
