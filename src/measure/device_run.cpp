#include "measure/device_run.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/try.h"
#include "device/cuda.h"
#include "measure/activations.h"
#include "measure/timer.h"

namespace gearshift {

namespace {

// Where host address `at` of a piece of memory is in its copy.
uint8_t* there(DeviceBuffer& copy, const void* memory, const void* at) {
  return copy.data() + (static_cast<const uint8_t*>(at) - static_cast<const uint8_t*>(memory));
}

Result<DeviceBuffer> copied(std::span<const uint8_t> memory) {
  GEARSHIFT_TRY(DeviceBuffer copy, DeviceBuffer::allocate(memory.size()));
  GEARSHIFT_CHECK(copy.write(memory.data(), memory.size()));
  return copy;
}

// Calls of a kernel on the device that differ in the copy of the weights they read.
struct Calls {
  const Kernel& kernel;
  RunArgs args;
  std::vector<const uint8_t*> weights;
  std::string_view tactic;

  Result<cuda::Graph> capture(int64_t count) const {
    return cuda::Graph::capture([&](void* stream) {
      for (int64_t i = 0; i < count; ++i) {
        RunArgs call = args;
        call.packed = weights[static_cast<size_t>(i) % weights.size()];
        call.stream = stream;
        call.tactic = tactic;
        kernel.run(call);
      }
    });
  }
};

}  // namespace

Result<void> run_on_device(const DeviceCall& call) {
  GEARSHIFT_TRY(DeviceBuffer x, copied(call.x_memory));
  GEARSHIFT_TRY(DeviceBuffer y, copied(call.y_memory));
  GEARSHIFT_TRY(DeviceBuffer workspace, copied(call.workspace_memory));
  RunArgs args;
  args.weights = &call.layer.weights[static_cast<size_t>(call.expert)];
  args.packed = call.layer.packed_for(call.kernel, call.expert);
  args.x = call.x;
  args.y = call.y;
  if (call.x.rows > 0) {
    args.x.data = there(x, call.x_memory.data(), call.x.data);
    args.y.data = there(y, call.y_memory.data(), call.y.data);
  }
  if (!call.workspace.empty())
    args.workspace = {there(workspace, call.workspace_memory.data(), call.workspace.data()), call.workspace.size()};
  args.threads = call.threads;
  args.tactic = call.tactic;
  call.kernel.run(args);
  GEARSHIFT_CHECK(cuda::synchronize());
  GEARSHIFT_CHECK(y.read(call.y_memory.data(), call.y_memory.size()));
  // The inside of a large workspace says nothing: its two ends do.
  const size_t before = static_cast<size_t>(call.workspace.data() - call.workspace_memory.data());
  const size_t behind = call.workspace_memory.size() - before - call.workspace.size();
  if (call.workspace.empty() || before + behind == 0) return {};
  return workspace.read(call.workspace_memory.data(), call.workspace_memory.size());
}

Result<Timing> time_on_device(const Kernel& kernel, const PreparedLayer& layer, const ConstMatrix& x, int64_t expert,
                              std::string_view tactic, const DeviceTimerLimits& limits) {
  const LayerSpec& spec = layer.plan->layer;
  const int64_t size = element_bytes(x.dtype), bytes = kernel.layout->bytes(spec);
  const int64_t x_bytes = ((x.rows - 1) * x.stride + x.cols) * size;
  GEARSHIFT_TRY(DeviceBuffer x_there, copied({static_cast<const uint8_t*>(x.data), static_cast<size_t>(x_bytes)}));
  GEARSHIFT_TRY(DeviceBuffer y, DeviceBuffer::allocate(static_cast<size_t>(x.rows * spec.n * size)));
  const int64_t scratch = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(spec, x.rows, 1);
  GEARSHIFT_TRY(DeviceBuffer workspace, DeviceBuffer::allocate(static_cast<size_t>(scratch)));

  Calls calls{kernel, {}, {layer.packed_for(kernel, expert)}, tactic};
  calls.args.weights = &layer.weights[static_cast<size_t>(expert)];
  calls.args.x = x;
  calls.args.x.data = x_there.data();
  calls.args.y = {y.data(), x.dtype, x.rows, spec.n, spec.n};
  calls.args.workspace = workspace.span();
  const int64_t wanted = std::max<int64_t>(2, (limits.rotated_bytes + bytes - 1) / std::max<int64_t>(1, bytes));
  const int64_t copies = std::max<int64_t>(1, std::min(wanted, limits.most_copy_bytes / std::max<int64_t>(1, bytes)));
  std::vector<DeviceBuffer> copy_of_weights;
  for (int64_t i = 1; i < copies; ++i) {
    GEARSHIFT_TRY(DeviceBuffer copy, DeviceBuffer::allocate(static_cast<size_t>(bytes)));
    GEARSHIFT_CHECK(cuda::copy(copy.data(), calls.weights.front(), static_cast<size_t>(bytes)));
    calls.weights.push_back(copy.data());
    copy_of_weights.push_back(std::move(copy));
  }

  GEARSHIFT_TRY(cuda::Graph once, calls.capture(copies));
  GEARSHIFT_CHECK(once.replay_us());  // loads the kernel
  GEARSHIFT_TRY(const double once_us, once.replay_us());
  const double call_us = once_us / static_cast<double>(copies);
  const auto fitting = static_cast<int64_t>(limits.graph_us / std::max(0.5, call_us));
  const int64_t count = std::clamp(fitting / copies, int64_t{1}, std::max<int64_t>(1, 400 / copies)) * copies;
  GEARSHIFT_TRY(cuda::Graph graph, calls.capture(count));
  GEARSHIFT_CHECK(graph.replay_us());
  if (call_us > 100) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const int samples = call_us > 1500  ? std::min(limits.samples, 3)
                      : call_us > 400 ? std::min(limits.samples, 5)
                                      : limits.samples;
  std::vector<double> per_call;
  for (int i = 0; i < samples; ++i) {
    GEARSHIFT_TRY(const double us, graph.replay_us());
    per_call.push_back(us / static_cast<double>(count));
  }
  return summarize(std::move(per_call));
}

}  // namespace gearshift
