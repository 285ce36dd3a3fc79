// One made layer on the CUDA device: packed, launched in poisoned and guarded memory, judged like any other kernel.
#pragma once

#include "gearshift/prepare.h"
#include "kernel/case_run.h"
#include "measure/device_run.h"

namespace gearshift::testing {

inline const DeviceProfile& gpu() {
  static const DeviceProfile device = [] {
    const std::vector<DeviceProfile> devices = cuda_devices();
    return devices.empty() ? DeviceProfile{} : devices.front();
  }();
  return device;
}

inline constexpr int kHostThreads = 16;

// A made layer, ready on the device for the kernels it is asked for.
class OnDevice {
 public:
  explicit OnDevice(const MadeLayer& layer) : layer_(layer) {
    plan_.layer = layer.spec;
    prepared_.plan = &plan_;
    prepared_.weights.push_back(layer.weights);
  }
  const PreparedLayer& for_kernel(const Kernel& kernel) {
    const auto added = add_layout(prepared_, *kernel.layout, kHostThreads);
    EXPECT_TRUE(added.ok()) << (added.ok() ? "" : added.error().message());
    return prepared_;
  }

  Ran run(const Kernel& kernel, GuardedMatrix& x, int64_t m, DType dtype, int64_t gap = 3,
          std::string_view tactic = "") {
    const PreparedLayer& prepared = for_kernel(kernel);
    const LayerSpec& spec = layer_.spec;
    Guarded workspace(static_cast<size_t>(kernel.workspace_bytes(spec, m, 1)));
    GuardedMatrix y(dtype, m, spec.n, gap);
    ConstMatrix some = x.const_matrix();
    some.rows = m;
    const auto around = [](uint8_t* data, size_t bytes) { return std::span<uint8_t>(data - 64, bytes + 128); };
    auto* y_data = static_cast<uint8_t*>(y.matrix().data);
    auto* x_data = static_cast<uint8_t*>(x.matrix().data);
    const size_t size = element_bytes(dtype);
    const DeviceCall call{kernel,
                          prepared,
                          some,
                          around(x_data, static_cast<size_t>(x.matrix().rows * x.matrix().stride) * size),
                          y.matrix(),
                          around(y_data, static_cast<size_t>(m * (spec.n + gap)) * size),
                          {workspace.data(), workspace.size()},
                          around(workspace.data(), workspace.size()),
                          1,
                          0,
                          tactic};
    const auto ran = run_on_device(call);
    EXPECT_TRUE(ran.ok()) << kernel.name << ": " << (ran.ok() ? "" : ran.error().message());
    EXPECT_TRUE(workspace.intact()) << kernel.name << " wrote outside its workspace";
    EXPECT_TRUE(y.intact()) << kernel.name << " wrote outside its output";
    Ran out;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t n = 0; n < spec.n; ++n) out.y.push_back(y.at(i, n));
    }
    return out;
  }

 private:
  const MadeLayer& layer_;
  LayerPlan plan_;
  PreparedLayer prepared_;
};

inline std::vector<const Kernel*> cuda_kernels() {
  std::vector<const Kernel*> kernels;
  for (const KernelList& list : builtin_registry().lists) {
    for (const ListEntry& entry : list.entries) {
      if (entry.kernel->platform != Platform::cuda) continue;
      if (std::find(kernels.begin(), kernels.end(), entry.kernel) == kernels.end()) kernels.push_back(entry.kernel);
    }
  }
  return kernels;
}

}  // namespace gearshift::testing
