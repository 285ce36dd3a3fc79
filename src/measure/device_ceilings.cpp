#include "measure/device_ceilings.h"

#include "base/try.h"
#include "device/cublaslt.h"
#include "kernel/cuda/read_ceiling.h"
#include "measure/timer.h"

namespace gearshift {

namespace {

constexpr int64_t kMemory = int64_t{1} << 31;
// A line through a small and a large read has the start and the rate.
constexpr int64_t kSmall = int64_t{8} << 20, kLarge = int64_t{512} << 20;
constexpr int64_t kSide = 8192;  // of the product

}  // namespace

Result<DeviceCeilings> DeviceCeilings::make() {
  DeviceCeilings all;
  GEARSHIFT_TRY(all.memory_, DeviceBuffer::allocate(static_cast<size_t>(kMemory)));
  GEARSHIFT_TRY(all.sink_, DeviceBuffer::allocate(256));
  // Small numbers of both signs, whatever they are read as.
  GEARSHIFT_CHECK(cuda::fill(all.memory_.data(), 0x3C, static_cast<size_t>(kMemory)));
  GEARSHIFT_CHECK(all.sample());  // warms up
  all.start_us_.clear();
  all.gbytes_per_s_.clear();
  all.bf16_.clear();
  return all;
}

Result<double> DeviceCeilings::read_us(int64_t bytes, std::optional<cuda::Graph>& graph) {
  // At least 400 MB in turn, more than caches hold.
  const int64_t copies = kMemory / bytes, calls = std::max<int64_t>(1, 400'000'000 / bytes);
  if (!graph) {
    GEARSHIFT_TRY(graph, cuda::Graph::capture([&](void* stream) {
                    for (int64_t i = 0; i < calls; ++i)
                      (void)cuda::queue_read(memory_.data() + i % copies * bytes, bytes, sink_.data(), stream);
                  }));
  }
  GEARSHIFT_TRY(const double us, graph->replay_us());
  return us / static_cast<double>(calls);
}

Result<double> DeviceCeilings::product_us() {
  if (!product_) {
    cuda::Product p;
    p.n = p.k = p.m = p.a_stride = p.b_stride = p.d_stride = kSide;
    p.a = memory_.data();
    p.b = memory_.data() + kSide * kSide * 2;
    p.d = memory_.data() + kSide * kSide * 4;
    p.workspace = memory_.data() + kSide * kSide * 6;
    p.workspace_bytes = cuda::cublaslt_workspace_bytes;
    GEARSHIFT_TRY(product_, cuda::Graph::capture([&](void* stream) {
                    p.stream = stream;
                    (void)cuda::multiply(p);
                  }));
  }
  return product_->replay_us();
}

Result<void> DeviceCeilings::sample() {
  GEARSHIFT_TRY(const double small_us, read_us(kSmall, small_));
  GEARSHIFT_TRY(const double large_us, read_us(kLarge, large_));
  const double rate = static_cast<double>(kLarge - kSmall) / (large_us - small_us);  // bytes per us
  gbytes_per_s_.push_back(rate / 1e3);
  start_us_.push_back(large_us - static_cast<double>(kLarge) / rate);
  if (!cuda::has_cublaslt()) return {};
  GEARSHIFT_TRY(const double product, product_us());
  bf16_.push_back(2.0 * kSide * kSide * kSide / product / 1e3);
  return {};
}

std::vector<Ceiling> DeviceCeilings::ceilings() const {
  std::vector<Ceiling> all;
  const auto add = [&](std::string name, std::string unit, std::string instruction,
                       const std::vector<double>& samples) {
    if (samples.empty()) return;
    const Quantiles q = quantiles(samples);
    all.push_back({std::move(name), std::move(unit), std::move(instruction), q.median, q.p10, q.p90, q.samples});
  };
  add("read start", "us", "cp.async", start_us_);
  add("dram", "GB/s", "cp.async", gbytes_per_s_);
  add("bf16", "GFLOP/s", "cuBLASLt", bf16_);
  return all;
}

}  // namespace gearshift
