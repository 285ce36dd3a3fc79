#include "measure/host_laps.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/try.h"
#include "measure/activations.h"
#include "measure/core_waits.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace gearshift {

namespace {

constexpr int most_takes = 3;
// The waits of threads are counted a little apart from the clock: no lap is shorter than this part of what the clock
// says.
constexpr double least_share = 1e-3;

// Out of all caches, the last level's included.
void evict([[maybe_unused]] const uint8_t* bytes, [[maybe_unused]] size_t count) {
#if defined(__x86_64__)
  constexpr size_t line = 64;
  for (size_t i = 0; i < count; i += line) _mm_clflush(bytes + i);
  if (count > 0) _mm_clflush(bytes + count - 1);
  _mm_mfence();
#else
  // Without an instruction for it: other bytes, more than a last-level cache holds, take their place.
  static std::vector<uint8_t> others(size_t{256} << 20, 1);
  volatile uint64_t sum = 0;
  for (size_t i = 0; i < others.size(); i += 64) sum = sum + others[i];
#endif
}

void make_weights_cold(const PreparedLayer& layer, const Kernel& kernel, int64_t expert) {
  if (const uint8_t* packed = layer.packed_for(kernel, expert)) {
    evict(packed, static_cast<size_t>(kernel.layout->bytes(layer.plan->layer)));
    return;
  }
  for (const PartWeights& part : layer.weights[static_cast<size_t>(expert)].parts) {
    for (const ByteView& view : {part.weight, part.scale, part.zero_point, part.group_index})
      evict(view.data(), view.size());
  }
}

LapTime time_once(const TimedLaunch& launch, CoreWaits& waits) {
  const std::vector<uint64_t> before = waits.read_ns();
  const auto begin = std::chrono::steady_clock::now();
  launch.launch();
  const std::chrono::duration<double, std::micro> lap = std::chrono::steady_clock::now() - begin;
  const std::vector<uint64_t> after = waits.read_ns();
  uint64_t longest = 0;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i)
    longest = std::max(longest, after[i] > before[i] ? after[i] - before[i] : 0);
  return {lap.count(), static_cast<double>(longest) / 1000};
}

struct HostMatrices {
  OwnedMatrix x, y, workspace;
};

}  // namespace

HostClock host_clock() {
  const auto waits = std::make_shared<CoreWaits>();
  return {[waits](const TimedLaunch& launch) { return time_once(launch, *waits); }, make_weights_cold};
}

Result<Lap> laps_on_host(const HostClock& clock, const RaceSetting& setting) {
  const LayerSpec& layer = setting.layer.plan->layer;
  auto matrices = std::make_shared<HostMatrices>();
  GEARSHIFT_TRY(matrices->x, allocate_matrix(setting.dtype, setting.m, layer.k, "activations"));
  GEARSHIFT_TRY(matrices->y, allocate_matrix(setting.dtype, setting.m, layer.n, "output"));
  GEARSHIFT_TRY(matrices->workspace, allocate_matrix(DType::f32, 1, (setting.scratch_bytes + 3) / 4, "workspace"));
  make_plain_activations(matrices->x.view(), setting.seed, setting.threads,
                         activation_limit(setting.layer.weights[static_cast<size_t>(setting.expert)]));

  return Lap([clock, setting, matrices](size_t i) {
    const RaceEntry& entry = setting.entries[i];
    const TimedLaunch launch{entry.kernel, entry.tactic, setting.m, setting.mode, [&] {
                               run_kernel(*entry.kernel, setting.layer, std::as_const(matrices->x).view(),
                                          matrices->y.view(), matrices->workspace.bytes.span(), setting.threads,
                                          setting.expert, nullptr, entry.tactic);
                             }};
    double least = std::numeric_limits<double>::infinity();
    for (int take = 0; take < most_takes; ++take) {
      clock.make_cold(setting.layer, *entry.kernel, setting.expert);
      const LapTime lap = clock.time(launch);
      const double ran_us = std::max(lap.us - lap.waited_us, lap.us * least_share);
      least = std::min(least, ran_us);
      if (lap.waited_us <= ran_us) break;
    }
    return least;
  });
}

}  // namespace gearshift
