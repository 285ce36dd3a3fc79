#include "measure/tune_device.h"

#include <unistd.h>

#include <chrono>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace gearshift {

namespace {

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

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double time_once(const TimedLaunch& launch) {
  const auto begin = std::chrono::steady_clock::now();
  launch.launch();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

uint64_t free_memory() {
  const long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(size) : 0;
}

}  // namespace

TuneDevice host_tune_device() {
  return {time_once, make_weights_cold, [] { return false; }, free_memory, seconds};
}

}  // namespace gearshift
