// Which CUDA devices are here, and what launches must know about the one in use.
#include "device/cuda.h"

#include <dlfcn.h>

#include "base/text.h"

#ifdef GEARSHIFT_CUDA_TARGETS
#include <cuda_runtime_api.h>
#endif

namespace gearshift {

namespace {

// NVML comes with the driver and is opened, never linked; its calls and constants are those of nvml.h, which has kept
// them since version 2 of the interface.
class Nvml {
 public:
  static const Nvml& get() {
    static const Nvml nvml;
    return nvml;
  }
  std::string driver() const {
    char text[96] = "";
    if (driver_version_ == nullptr || driver_version_(text, sizeof text) != 0) return "";
    return text;
  }
  unsigned clock_mhz(const char* pci_bus, int type) const {
    void* device = nullptr;
    unsigned mhz = 0;
    if (by_pci_bus_ == nullptr || clock_ == nullptr || by_pci_bus_(pci_bus, &device) != 0) return 0;
    return clock_(device, type, &mhz) == 0 ? mhz : 0;
  }

  static constexpr int multiprocessor_clock = 1, memory_clock = 2;  // NVML_CLOCK_SM, NVML_CLOCK_MEM

 private:
  Nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return;
    const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
    if (init == nullptr || init() != 0) return;
    driver_version_ = reinterpret_cast<int (*)(char*, unsigned)>(dlsym(library, "nvmlSystemGetDriverVersion"));
    by_pci_bus_ = reinterpret_cast<int (*)(const char*, void**)>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    clock_ = reinterpret_cast<int (*)(void*, int, unsigned*)>(dlsym(library, "nvmlDeviceGetClockInfo"));
  }
  int (*driver_version_)(char*, unsigned) = nullptr;
  int (*by_pci_bus_)(const char*, void**) = nullptr;
  int (*clock_)(void*, int, unsigned*) = nullptr;
};

}  // namespace

#ifdef GEARSHIFT_CUDA_TARGETS

namespace {

std::string dotted_cuda_version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

struct Found {
  std::vector<DeviceProfile> devices;
  std::string problem;
};

Found find_cuda_devices() {
  Found found;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    found.problem = cudaGetErrorString(error);
    (void)cudaGetLastError();
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) continue;
    DeviceProfile device;
    device.name = properties.name;
    device.platform = Platform::cuda;
    device.arch = "sm_" + std::to_string(properties.major * 10 + properties.minor);
    device.capability = properties.major * 10 + properties.minor;
    device.aliases = {"cuda:" + std::to_string(i)};
    device.present = true;
    device.cores = properties.multiProcessorCount;
    device.memory_bytes = properties.totalGlobalMem;
    device.index = i;
    device.driver = Nvml::get().driver();
    found.devices.push_back(std::move(device));
  }
  if (found.devices.empty()) found.problem = "the driver reports no device";
  return found;
}

const Found& cuda_found() {
  static const Found found = find_cuda_devices();
  return found;
}

}  // namespace

std::vector<DeviceProfile> cuda_devices() { return cuda_found().devices; }

namespace cuda {

const std::vector<std::string_view>& code_targets() {
  static const std::vector<std::string> words = split(GEARSHIFT_CUDA_TARGETS, ' ');
  static const std::vector<std::string_view> targets(words.begin(), words.end());
  return targets;
}

ErrorInfo no_device(std::string_view asked) {
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = "--device " + printable(asked);
  const Found& found = cuda_found();
  error.found = found.devices.empty() ? "no CUDA device on this machine (" + found.problem + ")"
                                      : std::to_string(found.devices.size()) + " CUDA device(s) on this machine";
  error.wanted = "a device that is here";
  error.hint = "to plan for one that is not here, name it, for example --device sm_90";
  return error;
}

std::string runtime_version() { return dotted_cuda_version(CUDART_VERSION); }

const Limits& limits() {
  static thread_local Limits known;
  static thread_local int of = -1;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device == of) return known;
  const auto ask = [device](cudaDeviceAttr attribute) {
    int value = 0;
    return cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess ? value : 0;
  };
  known.multiprocessors = ask(cudaDevAttrMultiProcessorCount);
  known.shared_bytes_per_block = ask(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  known.shared_bytes_per_multiprocessor = ask(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  known.major = ask(cudaDevAttrComputeCapabilityMajor);
  known.minor = ask(cudaDevAttrComputeCapabilityMinor);
  of = device;
  return known;
}

Clocks clocks(int index) {
  char bus[32] = "";
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, index) != cudaSuccess) return {};
  return {Nvml::get().clock_mhz(bus, Nvml::multiprocessor_clock), Nvml::get().clock_mhz(bus, Nvml::memory_clock)};
}

}  // namespace cuda

#else

std::vector<DeviceProfile> cuda_devices() { return {}; }

namespace cuda {

const std::vector<std::string_view>& code_targets() {
  static const std::vector<std::string_view> none = {"none"};
  return none;
}

ErrorInfo no_device(std::string_view asked) {
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = "--device " + printable(asked);
  const bool driver = !Nvml::get().driver().empty();
  error.found = driver ? "an NVIDIA driver, and no CUDA code in this build"
                       : "no CUDA device that this build can use on this machine";
  error.wanted = "a device that is here";
  error.hint =
      driver ? "install the CUDA toolkit (12.8 or newer), configure again and rebuild; --device sm_90 plans without it"
             : "to plan for one that is not here, name it, for example --device sm_90";
  return error;
}

std::string runtime_version() { return ""; }
const Limits& limits() {
  static const Limits none;
  return none;
}
Clocks clocks(int) { return {}; }

}  // namespace cuda

#endif

}  // namespace gearshift
