// What every time on a GPU is held against: reading the same bytes, measured in the same run.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "device/cuda.h"
#include "kernel/cuda/read_ceiling.h"
#include "measure/timer.h"

namespace gearshift::bench {

struct ReadCeiling {
  double start_us = 0, gbytes_per_s = 0;
  double floor_us(double bytes) const { return start_us + bytes / (gbytes_per_s * 1e3); }
};

[[noreturn]] inline void fail(const ErrorInfo& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::exit(1);
}
template <class T>
T get(Result<T> result) {
  if (!result.ok()) fail(result.error());
  return *std::move(result);
}
inline void check(const Result<void>& result) {
  if (!result.ok()) fail(result.error());
}

inline double read_us(const DeviceBuffer& memory, int64_t bytes, uint32_t* sink) {
  const auto copies = static_cast<int64_t>(memory.size()) / bytes;
  const int64_t calls = std::max(copies, 400'000'000 / bytes / copies * copies);
  cuda::Graph graph = get(cuda::Graph::capture([&](void* stream) {
    for (int64_t i = 0; i < calls; ++i) (void)cuda::queue_read(memory.data() + i % copies * bytes, bytes, sink, stream);
  }));
  (void)get(graph.replay_us());
  std::vector<double> samples;
  for (int i = 0; i < 9; ++i) samples.push_back(get(graph.replay_us()) / static_cast<double>(calls));
  return summarize(std::move(samples)).median_us;
}

// time = start + bytes / rate, through a small and a large read.
inline ReadCeiling measure_ceiling() {
  const DeviceBuffer memory = get(DeviceBuffer::allocate(size_t{1} << 31));
  check(cuda::fill(const_cast<uint8_t*>(memory.data()), 0, memory.size()));
  const DeviceBuffer sink = get(DeviceBuffer::allocate(256));
  auto* word = reinterpret_cast<uint32_t*>(const_cast<uint8_t*>(sink.data()));
  constexpr int64_t small = 64 * 131072, large = 4096 * 131072;
  const double small_us = read_us(memory, small, word), large_us = read_us(memory, large, word);
  ReadCeiling ceiling;
  ceiling.gbytes_per_s = static_cast<double>(large - small) / ((large_us - small_us) * 1e3);
  ceiling.start_us = large_us - static_cast<double>(large) / (ceiling.gbytes_per_s * 1e3);
  return ceiling;
}

}  // namespace gearshift::bench
