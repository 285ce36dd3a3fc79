#include "measure/device_run.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <memory>
#include <thread>

#include "base/math.h"
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

void DeviceLaps::queue(int64_t count, void* stream) const {
  for (int64_t i = 0; i < count; ++i) {
    RunArgs call = args_;
    call.packed = weights_->copy(i % weights_->count());
    call.stream = stream;
    call.tactic = tactic_;
    kernel_->run(call);
  }
}

Result<std::shared_ptr<const RotatingWeights>> RotatingWeights::make(const uint8_t* packed, int64_t bytes,
                                                                     const DeviceTimerLimits& limits) {
  constexpr int64_t kAlignment = 256;
  auto weights = std::make_shared<RotatingWeights>();
  weights->packed_ = packed;
  weights->stride_ = ceil_div(std::max<int64_t>(1, bytes), kAlignment) * kAlignment;
  const int64_t wanted = std::clamp(ceil_div(limits.rotated_bytes, weights->stride_), int64_t{2}, limits.most_copies);
  weights->count_ = std::max<int64_t>(1, std::min(wanted, limits.most_copy_bytes / weights->stride_));
  const int64_t more = weights->count_ - 1;
  if (more == 0) return std::shared_ptr<const RotatingWeights>(std::move(weights));
  GEARSHIFT_TRY(weights->memory_, DeviceBuffer::allocate(static_cast<size_t>(more * weights->stride_)));
  uint8_t* memory = weights->memory_.data();
  GEARSHIFT_CHECK(cuda::copy(memory, packed, static_cast<size_t>(bytes)));
  // Each step doubles what is there.
  for (int64_t done = 1; done < more; done *= 2) {
    const int64_t next = std::min(done, more - done);
    GEARSHIFT_CHECK(cuda::copy(memory + done * weights->stride_, memory, static_cast<size_t>(next * weights->stride_)));
  }
  return std::shared_ptr<const RotatingWeights>(std::move(weights));
}

Result<DeviceLaps> DeviceLaps::make(const Kernel& kernel, const PreparedLayer& layer, const ConstMatrix& x,
                                    int64_t expert, std::string_view tactic, const DeviceTimerLimits& limits) {
  GEARSHIFT_TRY(
      std::shared_ptr<const RotatingWeights> weights,
      RotatingWeights::make(layer.packed_for(kernel, expert), kernel.layout->bytes(layer.plan->layer), limits));
  return make(kernel, layer, x, expert, tactic, limits, std::move(weights));
}

Result<DeviceLaps> DeviceLaps::make(const Kernel& kernel, const PreparedLayer& layer, const ConstMatrix& x,
                                    int64_t expert, std::string_view tactic, const DeviceTimerLimits& limits,
                                    std::shared_ptr<const RotatingWeights> weights) {
  const LayerSpec& spec = layer.plan->layer;
  const int64_t size = element_bytes(x.dtype);
  const int64_t x_bytes = ((x.rows - 1) * x.stride + x.cols) * size;
  const int64_t scratch = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(spec, x.rows, 1);
  GEARSHIFT_TRY(DeviceBuffer x_there, copied({static_cast<const uint8_t*>(x.data), static_cast<size_t>(x_bytes)}));
  GEARSHIFT_TRY(DeviceBuffer y, DeviceBuffer::allocate(static_cast<size_t>(x.rows * spec.n * size)));
  GEARSHIFT_TRY(DeviceBuffer workspace, DeviceBuffer::allocate(static_cast<size_t>(scratch)));
  DeviceLaps laps;
  laps.kernel_ = &kernel;
  laps.tactic_ = tactic;
  laps.weights_ = std::move(weights);
  laps.args_.weights = &layer.weights[static_cast<size_t>(expert)];
  laps.args_.x = x;
  laps.args_.x.data = x_there.data();
  laps.args_.y = {y.data(), x.dtype, x.rows, spec.n, spec.n};
  laps.args_.workspace = workspace.span();
  for (DeviceBuffer* buffer : {&x_there, &y, &workspace}) laps.memory_.push_back(std::move(*buffer));

  const auto recorded = [&](int64_t count) {
    return cuda::Graph::capture([&](void* stream) { laps.queue(count, stream); });
  };
  const int64_t copies = laps.copies();
  GEARSHIFT_TRY(cuda::Graph once, recorded(copies));
  GEARSHIFT_CHECK(once.replay_us());  // loads the kernel
  GEARSHIFT_TRY(const double once_us, once.replay_us());
  laps.first_us_ = once_us / static_cast<double>(copies);
  const auto fitting = static_cast<int64_t>(limits.graph_us / std::max(0.5, laps.first_us_));
  laps.count_ = std::clamp(fitting / copies, int64_t{1}, std::max<int64_t>(1, 400 / copies)) * copies;
  if (limits.graph) {
    GEARSHIFT_TRY(laps.graph_, recorded(laps.count_));
    GEARSHIFT_CHECK(laps.graph_->replay_us());
  }
  return laps;
}

Result<double> DeviceLaps::lap_us() {
  const auto count = static_cast<double>(count_);
  if (graph_) {
    GEARSHIFT_TRY(const double us, graph_->replay_us());
    return us / count;
  }
  GEARSHIFT_CHECK(cuda::synchronize());
  const auto begin = std::chrono::steady_clock::now();
  queue(count_, nullptr);
  GEARSHIFT_CHECK(cuda::synchronize());
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / count;
}

Result<Timing> time_on_device(const Kernel& kernel, const PreparedLayer& layer, const ConstMatrix& x, int64_t expert,
                              std::string_view tactic, const DeviceTimerLimits& limits) {
  GEARSHIFT_TRY(DeviceLaps laps, DeviceLaps::make(kernel, layer, x, expert, tactic, limits));
  const double call_us = laps.first_us();
  if (call_us > 100) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const int samples = call_us > 1500  ? std::min(limits.samples, 3)
                      : call_us > 400 ? std::min(limits.samples, 5)
                                      : limits.samples;
  std::vector<double> per_call;
  for (int i = 0; i < samples; ++i) {
    GEARSHIFT_TRY(const double us, laps.lap_us());
    per_call.push_back(us);
  }
  return summarize(std::move(per_call));
}

Result<Lap> laps_on_device(const RaceSetting& setting) {
  const LayerSpec& spec = setting.layer.plan->layer;
  GEARSHIFT_TRY(OwnedMatrix x, allocate_matrix(setting.dtype, setting.m, spec.k, "activations"));
  const LayerWeights& weights = setting.layer.weights[static_cast<size_t>(setting.expert)];
  make_activations(x.view(), setting.seed, setting.threads, activation_limit(weights));
  DeviceTimerLimits limits;
  limits.graph = setting.mode != "eager";
  // A quarter of what is free for the copies of all layouts.
  std::map<const Layout*, std::shared_ptr<const RotatingWeights>> weights_of;
  for (const RaceEntry& entry : setting.entries) weights_of.try_emplace(entry.kernel->layout);
  limits.most_copy_bytes = static_cast<int64_t>(cuda::free_bytes() / 4 / std::max<size_t>(1, weights_of.size()));
  const auto laps = std::make_shared<std::vector<DeviceLaps>>();
  for (const RaceEntry& entry : setting.entries) {
    const Layout& layout = *entry.kernel->layout;
    std::shared_ptr<const RotatingWeights>& copies = weights_of[&layout];
    if (copies == nullptr) {
      GEARSHIFT_TRY(copies, RotatingWeights::make(setting.layer.packed_for(*entry.kernel, setting.expert),
                                                  layout.bytes(spec), limits));
    }
    GEARSHIFT_TRY(DeviceLaps made, DeviceLaps::make(*entry.kernel, setting.layer, std::as_const(x).view(),
                                                    setting.expert, entry.tactic, limits, copies));
    laps->push_back(std::move(made));
  }
  return Lap([laps](size_t candidate) {
    const Result<double> us = (*laps)[candidate].lap_us();
    return us.ok() ? *us : std::numeric_limits<double>::infinity();
  });
}

}  // namespace gearshift
