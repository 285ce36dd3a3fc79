// The prefill kernels against what memory and tensor cores allow, and against cuBLASLt on operands of the same width,
// timed in the same run: bf16 for those that multiply 16-bit floats, FP8 with one scale or INT8 for those that multiply
// codes. Each row says which tactic ran.
#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include "device/cublaslt.h"
#include "device/cuda.h"
#include "kernel/cuda/prefill.h"
#include "kernel/cuda/prefill_rows.h"
#include "kernel_named.h"
#include "measure/activations.h"
#include "measure/device_run.h"
#include "measure/made_up_layer.h"

namespace gearshift::bench {

class PrefillBench {
 public:
  // `kernels`: names with commas, empty: all. `floor_us`: what reading so many bytes takes.
  PrefillBench(std::string kernels, std::vector<int64_t> batch, bool sweep, std::function<double(double)> floor_us)
      : kernels_(std::move(kernels)), batch_(std::move(batch)), sweep_(sweep), floor_us_(std::move(floor_us)) {}

  void shape(int64_t n, int64_t k) {
    x_.clear();
    library_.clear();
    for (const Group& group : groups()) {
      std::unique_ptr<MadeUpLayer> layer;
      for (const Entry& entry : group.entries) {
        const Kernel& kernel = kernel_named(entry.kernel);
        if (!listed(kernels_, kernel.name)) continue;
        if (layer == nullptr) layer = make_up_layer(group.scheme, {n}, k, 1);
        check(use_kernel(*layer, kernel, kThreads));
        for (const int64_t m : batch_) point(kernel, entry, *layer, m);
      }
    }
  }
  const std::string& rows() const { return rows_; }

 private:
  static constexpr int kThreads = 16;

  struct Entry {
    const char* kernel;
    DType library = DType::bf16;  // operands of the product that it is held against
    CodeProduct product = CodeProduct::e4m3;
  };
  // Kernels that run on the same made-up layer.
  struct Group {
    Scheme scheme;
    std::vector<Entry> entries;
  };
  static Scheme weight_only(Family family) {
    Scheme scheme = common_scheme(family);
    scheme.activation.reset();
    return scheme;
  }
  static std::vector<Group> groups() {
    constexpr DType bf16 = DType::bf16, fp8 = DType::f8_e4m3;
    return {
        {common_scheme(Family::nvfp4_w4a4), {{"sm90_nvfp4_w4a16_prefill"}, {"sm90_nvfp4_w4a4_prefill"}}},
        {weight_only(Family::mxfp4), {{"sm90_mxfp4_prefill"}}},
        {common_scheme(Family::mixed_precision), {{"sm90_int4_w4a16_prefill"}}},
        {common_scheme(Family::fp8_w8a8),
         {{"sm90_w8a16_fp8_prefill"}, {"sm90_fp8_w8a8_prefill", fp8, CodeProduct::e4m3}}},
        {common_scheme(Family::fp8_block_w8a8),
         {{"sm90_w8a16_fp8_prefill"}, {"sm90_fp8_block_w8a8_prefill", fp8, CodeProduct::e4m3_block}}},
        {weight_only(Family::int8_w8a8), {{"sm90_int8_w8a16_prefill"}}},
        {common_scheme(Family::int8_w8a8), {{"sm90_int8_w8a8_prefill", DType::i8, CodeProduct::int8}}},
        {weight_only(Family::mxfp8), {{"sm90_mxfp8_prefill", bf16}}},
        {common_scheme(Family::mxfp8), {{"sm90_mxfp8_prefill", bf16}}},
        {weight_only(Family::mxfp6), {{"sm90_mxfp6_prefill", bf16}}},
    };
  }

  void point(const Kernel& kernel, const Entry& entry, const MadeUpLayer& layer, int64_t m) {
    const LayerSpec& spec = layer.plan.layer;
    const cuda::PrefillTable table = entry.library == DType::bf16
                                         ? prefill_table(spec, kernel.activation, *kernel.layout, DType::bf16)
                                         : prefill_rows_table(entry.product, false);
    const cuda::PrefillSize size = prefill_size(spec, *kernel.layout, spec.n, m);
    const std::string chosen = cuda::prefill_tactic_name(table, cuda::choose_prefill(table, size));
    time(kernel, entry, layer, m, chosen, true);
    if (!sweep_) return;
    for (const std::string_view tactic : kernel.tactics) {
      const cuda::PrefillChoice choice = cuda::find_prefill_tactic(table, tactic);
      if (tactic == chosen || choice.tactic < 0) continue;
      // Tiles that are mostly empty, and those that are many times too small.
      const int tokens = table.tactics[static_cast<size_t>(choice.tactic)].tokens;
      if ((tokens > 32 && tokens >= 2 * m) || (tokens < 128 && tokens * 8 < m)) continue;
      if (cuda::schedule_prefill(table, choice.tactic, choice.sharing, size))
        time(kernel, entry, layer, m, tactic, false);
    }
  }

  void time(const Kernel& kernel, const Entry& entry, const MadeUpLayer& layer, int64_t m, std::string_view tactic,
            bool chosen) {
    const LayerSpec& spec = layer.plan.layer;
    DeviceTimerLimits limits;
    if (sweep_) {
      limits.samples = 5;
      limits.graph_us = 500;
    }
    const Timing timing =
        get(time_on_device(kernel, layer.prepared, x_of(m, spec.k), 0, chosen ? std::string_view() : tactic, limits));
    const double bytes = static_cast<double>(spec.weight_bytes) + 2.0 * static_cast<double>(m * (spec.n + spec.k));
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(spec.n) * static_cast<double>(spec.k);
    // Best rates of an H200, operations a us.
    const double rate = entry.library == DType::bf16 ? 820e6 : entry.library == DType::i8 ? 1007e6 : 1585e6;
    const double floor = std::max(floor_us_(bytes), flops / rate), library = library_us(entry.library, spec, m);
    rows_ += fmt::format(
        "{}    {{\"shape\": \"{}x{}\", \"family\": \"{}\", \"scheme\": \"{}\", \"n\": {}, \"k\": {}, \"m\": {}, "
        "\"kernel\": \"{}\", \"backend\": \"{}\", \"tactic\": \"{}\", \"chosen\": {}, \"median_us\": {:.3f}, "
        "\"p10_us\": {:.3f}, \"p90_us\": {:.3f}, \"samples\": {}, \"tflops\": {:.1f}, \"floor_us\": {:.3f}, "
        "\"over_floor\": {:.3f}, \"relative_error\": null, \"ok\": null, \"library_us\": {:.3f}, \"over_library\": "
        "{:.3f}, \"multiprocessor_mhz\": {}}}",
        rows_.empty() ? "" : ",\n", spec.n, spec.k, name(spec.family), scheme_name(spec.scheme), spec.n, spec.k, m,
        kernel.name, kernel.backend, tactic, chosen, timing.median_us, timing.p10_us, timing.p90_us, timing.samples,
        flops / (timing.median_us * 1e6), floor, timing.median_us / floor, library, timing.median_us / library,
        cuda::clocks(0).multiprocessor_mhz);
    std::printf("%-28s %6ldx%-6ld M=%-5ld %s %-20s %9.2f us  x%.3f  cublaslt %9.2f x%.3f\n",
                std::string(kernel.name).c_str(), spec.n, spec.k, m, chosen ? "*" : " ", std::string(tactic).c_str(),
                timing.median_us, timing.median_us / floor, library, timing.median_us / library);
    std::fflush(stdout);
  }

  ConstMatrix x_of(int64_t m, int64_t k) {
    const auto found = x_.find(m);
    if (found != x_.end()) return std::as_const(found->second).view();
    OwnedMatrix& made = x_.emplace(m, get(allocate_matrix(DType::bf16, m, k, "x"))).first->second;
    make_activations(made.view(), 1, kThreads, INFINITY);
    return std::as_const(made).view();
  }

  // Device memory full of numbers, other ones than zero: what a product costs in power depends on them.
  static DeviceBuffer numbers(DType type, int64_t bytes) {
    static std::map<DType, std::vector<uint8_t>> made;
    std::vector<uint8_t>& block = made[type];
    if (block.empty()) {
      std::mt19937_64 random(1);
      block.resize(size_t{1} << 24);
      for (size_t i = 0; i < block.size(); i += 8) {
        const uint64_t drawn = random();
        std::memcpy(block.data() + i, &drawn, 8);
      }
      // Exponents below one.
      if (type == DType::f8_e4m3)
        for (uint8_t& code : block) code &= 0xBF;
      if (type == DType::bf16)
        for (size_t i = 1; i < block.size(); i += 2) block[i] = static_cast<uint8_t>((block[i] & 0x81) | 0x3C);
    }
    DeviceBuffer buffer = get(DeviceBuffer::allocate(static_cast<size_t>(bytes)));
    check(buffer.write(block.data(), std::min(block.size(), buffer.size())));
    for (size_t at = block.size(); at < buffer.size(); at += block.size())
      check(cuda::copy(buffer.data() + at, buffer.data(), std::min(block.size(), buffer.size() - at)));
    return buffer;
  }

  // cuBLASLt alone, weights in turn.
  double library_us(DType type, const LayerSpec& spec, int64_t m) {
    double& known = library_[{type, m}];
    if (known > 0) return known;
    const int64_t size = type == DType::bf16 ? 2 : 1, weight_bytes = spec.n * spec.k * size;
    const int64_t copies = std::max<int64_t>(2, (330'000'000 + weight_bytes - 1) / weight_bytes);
    const DeviceBuffer weights = numbers(type, copies * weight_bytes), x = numbers(type, m * spec.k * size);
    DeviceBuffer y = get(DeviceBuffer::allocate(static_cast<size_t>(m * spec.n * 4)));
    DeviceBuffer workspace = get(DeviceBuffer::allocate(cuda::cublaslt_workspace_bytes));
    const double expected = 2.0 * static_cast<double>(m * spec.n) * static_cast<double>(spec.k) / 700e6;
    const int64_t calls = copies * std::max<int64_t>(1, static_cast<int64_t>(1500 / (expected + 3)) / copies);
    bool ran = true;
    cuda::Graph graph = get(cuda::Graph::capture([&](void* stream) {
      for (int64_t i = 0; i < calls; ++i) {
        cuda::Product p;
        p.n = spec.n;
        p.m = m;
        p.k = p.a_stride = p.b_stride = spec.k;
        p.d_stride = spec.n;
        p.a = weights.data() + i % copies * weight_bytes;
        p.b = x.data();
        p.d = y.data();
        p.operand = type;
        p.out = type == DType::i8 ? DType::i32 : DType::bf16;
        p.workspace = workspace.data();
        p.workspace_bytes = cuda::cublaslt_workspace_bytes;
        p.stream = stream;
        ran = cuda::multiply(p) && ran;
      }
    }));
    (void)get(graph.replay_us());
    if (expected > 100) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::vector<double> samples;
    for (int i = 0; i < 5; ++i) samples.push_back(get(graph.replay_us()) / static_cast<double>(calls));
    known = ran ? summarize(std::move(samples)).median_us : INFINITY;
    return known;
  }

  std::string kernels_;
  std::vector<int64_t> batch_;
  bool sweep_;
  std::function<double(double)> floor_us_;
  std::map<int64_t, OwnedMatrix> x_;                     // of the shape, by tokens
  std::map<std::pair<DType, int64_t>, double> library_;  // likewise
  std::string rows_;
};

}  // namespace gearshift::bench
