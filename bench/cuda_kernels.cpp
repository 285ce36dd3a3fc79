// How fast CUDA kernels are against what memory allows: CUDA-graph medians over rotating weights, with the device's
// read ceiling and cuBLASLt's bf16 time measured in the same run, and whether they meet their limits (cuda_targets.h).
// Writes a gearshift.bench/1 document.
//
// usage: bench_cuda_kernels FILE.json [--sweep] [--formats N,N] [--shapes N]
//   --sweep: every tactic, not only the one that is chosen; --formats: names of cases() below (those of prefill
//   kernels only if asked for, with a --batch of theirs);
//   --shapes: how many of the nine shapes, or which (4096x4096,6144x4096); --batch M,M; --no-large: not the batch of
//   4096
// usage: bench_cuda_kernels FILE.json --prefill [--kernels NAME,NAME] [--sweep] [--shapes ...] [--batch M,M]
//   the prefill kernels beside cuBLASLt (cuda_prefill.h)
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>

#include "base/text.h"
#include "cuda_document.h"
#include "cuda_prefill.h"
#include "cuda_targets.h"
#include "device/cublaslt.h"
#include "device/cuda.h"
#include "gearshift/kernel.h"
#include "measure/activations.h"
#include "measure/device_run.h"
#include "measure/judge.h"
#include "measure/made_up_layer.h"
#include "measure/timer.h"
#include "read_floor.h"

namespace {

using namespace gearshift;
using namespace gearshift::bench;

// (N, K) of linear layers of widespread models; the first five have 64 Mi weights or more.
constexpr int64_t kShapes[][2] = {{28672, 8192}, {8192, 28672}, {10240, 8192}, {8192, 8192}, {5120, 17408},
                                  {14336, 4096}, {4096, 14336}, {6144, 4096},  {4096, 4096}};

// Rows that the reference is asked about: its time grows with them.
constexpr int64_t kMostJudged = 32;

struct Arguments {
  std::string file, formats =
                        "nvfp4,mxfp4,int4,fp8,int8,fp8_block,mxfp8,mxfp6,fp8_w8a8,fp8_block_w8a8,int8_w8a8,"
                        "fp8_tensor_library,fp8_library,fp8_block_library,int8_library";
  std::string kernels;  // of --prefill
  std::vector<int64_t> batch;
  bool sweep = false, large = true, prefill = false;
  std::string shapes;

  bool has_shape(size_t i) const {
    if (shapes.find('x') != std::string::npos)
      return listed(shapes, fmt::format("{}x{}", kShapes[i][0], kShapes[i][1]));
    return shapes.empty() || i < std::stoul(shapes);
  }
};

// Random codes, none of them a NaN of e4m3: products of equal numbers take less power, and so less time.
void fill_with_codes(const DeviceBuffer& buffer) {
  std::mt19937 random(3);
  std::vector<uint8_t> codes(std::min<size_t>(buffer.size(), size_t{1} << 22));
  for (uint8_t& code : codes) code = static_cast<uint8_t>((random() & 0x80) | (random() % 0x7F));
  auto* to = const_cast<uint8_t*>(buffer.data());
  for (size_t at = 0; at < buffer.size(); at += codes.size()) {
    const size_t some = std::min(codes.size(), buffer.size() - at);
    if (at == 0)
      check(const_cast<DeviceBuffer&>(buffer).write(codes.data(), some));
    else
      check(cuda::copy(to + at, to, some));
  }
}

// cuBLASLt alone: codes by codes that are there already, weights in turn. 0: it has no such product.
double library_us(const Kernel& kernel, int64_t n, int64_t k, int64_t m) {
  const bool block = kernel.name == "sm90_fp8_block_w8a8_cublaslt", integers = kernel.accumulator == "int32";
  const int64_t copies = std::max<int64_t>(2, (330'000'000 + n * k - 1) / (n * k));
  const DeviceBuffer weights = get(DeviceBuffer::allocate(static_cast<size_t>(copies * n * k)));
  const DeviceBuffer x = get(DeviceBuffer::allocate(static_cast<size_t>(m * k)));
  const DeviceBuffer y = get(DeviceBuffer::allocate(static_cast<size_t>(m * n * 4)));
  const DeviceBuffer scales = get(DeviceBuffer::allocate(static_cast<size_t>((n + m) * (k / 128 + 4) * 4)));
  const DeviceBuffer workspace = get(DeviceBuffer::allocate(cuda::cublaslt_workspace_bytes));
  fill_with_codes(weights);
  fill_with_codes(x);
  check(cuda::fill(const_cast<uint8_t*>(scales.data()), 0x38, scales.size()));  // as fp32: 4.4e-5
  cuda::Product p;
  p.n = n;
  p.m = m;
  p.k = p.a_stride = p.b_stride = k;
  p.d_stride = n;
  p.b = x.data();
  p.d = const_cast<uint8_t*>(y.data());
  p.operand = integers ? DType::i8 : DType::f8_e4m3;
  p.out = integers ? DType::i32 : DType::bf16;
  if (!integers) p.scales = block ? cuda::ProductScales::block128 : cuda::ProductScales::outer;
  p.a_scales = p.b_scales = scales.data();
  p.workspace = const_cast<uint8_t*>(workspace.data());
  p.workspace_bytes = cuda::cublaslt_workspace_bytes;
  p.a = weights.data();
  if (!cuda::has_algorithm(p)) return 0;
  const int64_t calls = copies * std::max<int64_t>(1, 40 / copies);
  cuda::Graph graph = get(cuda::Graph::capture([&](void* stream) {
    for (int64_t i = 0; i < calls; ++i) {
      cuda::Product call = p;
      call.a = weights.data() + i % copies * n * k;
      call.stream = stream;
      (void)cuda::multiply(call);
    }
  }));
  (void)get(graph.replay_us());
  std::vector<double> samples;
  for (int i = 0; i < 9; ++i) samples.push_back(get(graph.replay_us()) / static_cast<double>(calls));
  return summarize(std::move(samples)).median_us;
}

struct Case {
  const char* name;
  const char* kernel;
  const char* baseline;  // what is timed at M = 4096; nullptr: the kernel itself
  Scheme scheme;
  Target target = Target::none;
  bool fp8 = false;  // products at the rate of FP8
};
Scheme without_activations(Family family) {
  Scheme scheme = common_scheme(family);
  scheme.activation.reset();
  return scheme;
}
Scheme with_fp8_tokens(Family family) {
  Scheme scheme = common_scheme(family);
  scheme.activation = common_scheme(Family::fp8_w8a8).activation;
  return scheme;
}
// Scales of tensors that the checkpoint stores, of x too.
Scheme fp8_per_tensor() {
  Scheme scheme = common_scheme(Family::fp8_w8a8);
  scheme.weight.grouping = {Grouping::Kind::tensor, 0, 0};
  scheme.activation->granularity = Granularity::tensor;
  scheme.activation->dynamic = false;
  return scheme;
}
std::vector<Case> cases() {
  constexpr Target four = Target::four_bits, eight = Target::eight_bits, library = Target::library;
  const Scheme nvfp4 = common_scheme(Family::nvfp4_w4a16), int4 = common_scheme(Family::mixed_precision),
               mxfp4 = without_activations(Family::mxfp4), fp8 = common_scheme(Family::fp8_w8a8),
               fp8_block = common_scheme(Family::fp8_block_w8a8), int8 = common_scheme(Family::int8_w8a8);
  return {{"nvfp4", "sm80_nvfp4_w4a16_stream", "sm80_nvfp4_w4a16_emulation", nvfp4, four},
          {"mxfp4", "sm80_mxfp4_stream", "sm80_mxfp4_emulation", mxfp4, four},
          {"int4", "sm80_int4_w4a16_stream", "sm80_int4_w4a16_emulation", int4, four},
          {"fp8", "sm80_w8a16_fp8_stream", "sm80_w8a16_fp8_emulation", common_scheme(Family::w8a16_fp8), eight},
          {"int8", "sm80_int8_w8a16_stream", "sm80_mixed_precision_emulation", without_activations(Family::int8_w8a8),
           eight},
          {"fp8_block", "sm80_w8a16_fp8_stream", "sm80_w8a16_fp8_emulation",
           without_activations(Family::fp8_block_w8a8), eight},
          {"mxfp8", "sm80_mxfp8_stream", "sm80_mxfp8_emulation", without_activations(Family::mxfp8)},
          {"mxfp6", "sm80_mxfp6_stream", "sm80_mxfp6_emulation", without_activations(Family::mxfp6)},
          {"fp8_w8a8", "sm80_fp8_w8a8_stream", "sm80_fp8_w8a8_emulation", fp8},
          {"fp8_block_w8a8", "sm80_fp8_block_w8a8_stream", "sm80_fp8_block_w8a8_emulation", fp8_block},
          {"int8_w8a8", "sm80_int8_w8a8_stream", "sm80_int8_w8a8_emulation", int8},
          {"fp8_tensor_library", "sm89_fp8_w8a8_cublaslt", nullptr, fp8_per_tensor(), library},
          {"fp8_library", "sm89_fp8_w8a8_cublaslt", nullptr, fp8, library},
          {"fp8_block_library", "sm90_fp8_block_w8a8_cublaslt", nullptr, fp8_block, library},
          {"int8_library", "sm80_int8_w8a8_cublaslt", nullptr, int8, library},
          {"nvfp4_prefill", "sm90_nvfp4_w4a16_prefill", "sm80_nvfp4_w4a16_emulation", nvfp4},
          {"mxfp4_prefill", "sm90_mxfp4_prefill", "sm80_mxfp4_emulation", mxfp4},
          {"int4_prefill", "sm90_int4_w4a16_prefill", "sm80_int4_w4a16_emulation", int4},
          {"fp8_prefill", "sm90_fp8_w8a8_prefill", "sm80_fp8_w8a8_emulation", fp8},
          {"fp8_block_prefill", "sm90_fp8_block_w8a8_prefill", "sm80_fp8_block_w8a8_emulation", fp8_block},
          {"int8_prefill", "sm90_int8_w8a8_prefill", "sm80_int8_w8a8_emulation", int8},
          {"mxfp4_fp8_prefill", "sm90_mxfp4_fp8_prefill", "sm80_mxfp4_emulation", with_fp8_tokens(Family::mxfp4),
           Target::none, true},
          {"int4_fp8_prefill", "sm90_int4_fp8_prefill", "sm80_int4_w4a8_emulation", with_fp8_tokens(Family::w4a8),
           Target::none, true}};
}

// Tactics that a sweep tries for so many tokens: those of the streaming kernels begin with their tiles of 8 tokens,
// those of the prefill kernels with the tokens of a tile.
bool is_worth_a_try(std::string_view tactic, int64_t m) {
  if (tactic[0] == 't') return (tactic[1] == '1') == (m <= 8);
  const int64_t tokens = std::stoll(std::string(tactic.substr(1)));
  return (tokens == 32 || tokens < 2 * m) && (tokens >= 128 || tokens * 4 >= m);
}

class Bench {
 public:
  Bench(const Arguments& arguments, const ReadCeiling& ceiling) : arguments_(arguments), ceiling_(ceiling) {}

  void shape(const Case& c, int64_t n, int64_t k) {
    const auto layer = make_up_layer(c.scheme, {n}, k, 1);
    const Kernel& kernel = kernel_named(c.kernel);
    check(use_kernel(*layer, kernel, 16));
    Judge judge(layer->prepared.weights[0], 1, 16);
    for (const int64_t m : arguments_.batch) {
      OwnedMatrix x = get(allocate_matrix(DType::bf16, m, k, "x"));
      make_activations(x.view(), 1, 16, INFINITY);
      const Comparison comparison = m <= kMostJudged ? compare(kernel, *layer, x, judge) : Comparison{};
      std::vector<std::string_view> tactics = {""};
      if (arguments_.sweep) {
        for (const std::string_view tactic : kernel.tactics) {
          if (is_worth_a_try(tactic, m)) tactics.push_back(tactic);
        }
      }
      for (const std::string_view tactic : tactics) {
        const auto timing = time_on_device(kernel, layer->prepared, std::as_const(x).view(), 0, tactic);
        if (timing.ok())
          row(kernel, *layer, m, tactic.empty() ? "chosen" : tactic, *timing, comparison, c.target, c.fp8);
      }
    }
    if (!arguments_.large) return;
    const Kernel& baseline = c.baseline == nullptr ? kernel : kernel_named(c.baseline);
    row(baseline, *layer, kManyTokens, "", get(time_on_device(baseline, layer->prepared, many_tokens(k), 0)), {},
        c.baseline == nullptr ? Target::none : Target::baseline);
  }

  // cuBLASLt alone on bf16 weights, what a baseline is held against.
  void plain(int64_t n, int64_t k) {
    const auto layer = make_up_layer(common_scheme(Family::bf16), {n}, k, 1);
    const Kernel& kernel = kernel_named("sm80_bf16_cublaslt");
    check(use_kernel(*layer, kernel, 16));
    const Timing timing = get(time_on_device(kernel, layer->prepared, many_tokens(k), 0));
    bf16_us_ = timing.median_us;
    row(kernel, *layer, kManyTokens, "", timing, {}, Target::none);
  }

  const std::string& rows() const { return rows_; }
  const Verdicts& verdicts() const { return verdicts_; }

 private:
  static constexpr int64_t kManyTokens = 4096;

  // Drawn once for all layers of a width.
  ConstMatrix many_tokens(int64_t k) {
    if (!many_ || many_->view().stride != k) {
      many_.emplace(get(allocate_matrix(DType::bf16, kManyTokens, k, "x")));
      make_activations(many_->view(), 1, 16, INFINITY);
    }
    return std::as_const(*many_).view();
  }

  static Comparison compare(const Kernel& kernel, const MadeUpLayer& layer, const OwnedMatrix& x, Judge& judge) {
    OwnedMatrix y = get(allocate_matrix(DType::bf16, x.rows, layer.plan.layer.n, "y"));
    std::memset(y.bytes.data(), 0xFF, y.bytes.size());
    AlignedBuffer workspace(static_cast<size_t>(kernel.workspace_bytes(layer.plan.layer, x.rows, 1)));
    check(run_on_device({kernel,
                         layer.prepared,
                         x.view(),
                         {x.bytes.data(), x.bytes.size()},
                         y.view(),
                         y.bytes.span(),
                         workspace.span(),
                         workspace.span(),
                         1,
                         0,
                         ""}));
    return judge.compare(kernel, x.view(), std::as_const(y).view());
  }

  void row(const Kernel& kernel, const MadeUpLayer& layer, int64_t m, std::string_view tactic, const Timing& timing,
           const Comparison& comparison, Target target, bool fp8 = false) {
    const LayerSpec& spec = layer.plan.layer;
    const double bytes = static_cast<double>(spec.weight_bytes) + 2.0 * static_cast<double>(m * (spec.n + spec.k));
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(spec.n) * static_cast<double>(spec.k);
    const bool library_codes = kernel.backend == "cublaslt" && spec.scheme.quantized;
    // Best rates of an H200, operations a us: of 16-bit products, of FP8 and of INT8.
    const double rate = fp8 ? 1585e6 : !library_codes ? 820e6 : kernel.accumulator == "int32" ? 1007e6 : 1585e6;
    const double floor = std::max(ceiling_.floor_us(bytes), flops / rate);
    const cuda::Clocks clocks = cuda::clocks(0);
    const bool judged = m <= kMostJudged;
    const double alone = library_codes ? library_us(kernel, spec.n, spec.k, m) : 0;
    const Limit limit = limit_of(target, {spec.n, spec.k, m, timing.median_us, floor, alone, bf16_us_});
    // Of a sweep only what is chosen.
    const bool asked = !limit.name.empty() && (tactic.empty() || tactic == "chosen");
    const bool met = timing.median_us <= limit.us;
    if (asked) verdicts_.add(limit, fmt::format("{} {}x{} M {}", kernel.name, spec.n, spec.k, m), timing.median_us);
    rows_ += fmt::format(
        "{}    {{\"shape\": \"{}x{}\", \"family\": \"{}\", \"scheme\": \"{}\", \"n\": {}, \"k\": {}, \"m\": {}, "
        "\"kernel\": \"{}\", "
        "\"backend\": \"{}\", \"tactic\": \"{}\", \"median_us\": {:.3f}, \"p10_us\": {:.3f}, \"p90_us\": {:.3f}, "
        "\"samples\": {}, "
        "\"gbytes_per_s\": {:.0f}, \"tflops\": {:.1f}, \"floor_us\": {:.3f}, \"over_floor\": {:.3f}, "
        "\"relative_error\": {}, "
        "\"ok\": {}{}{}, \"multiprocessor_mhz\": {}}}",
        rows_.empty() ? "" : ",\n", spec.n, spec.k, name(spec.family), scheme_name(spec.scheme), spec.n, spec.k, m,
        kernel.name, kernel.backend, tactic, timing.median_us, timing.p10_us, timing.p90_us, timing.samples,
        bytes / (timing.median_us * 1e3), flops / (timing.median_us * 1e6), floor, timing.median_us / floor,
        judged ? fmt::format("{:.3e}", comparison.relative_error) : "null",
        judged ? (comparison.ok ? "true" : "false") : "null",
        alone > 0 ? fmt::format(", \"library_alone_us\": {:.3f}", alone) : "",
        asked ? fmt::format(", \"limit_us\": {:.3f}, \"limit\": \"{}\", \"met\": {}", limit.us, limit.name, met) : "",
        clocks.multiprocessor_mhz);
    std::printf("%-28s %6ldx%-6ld M=%-5ld %-16s %9.2f us  x%.3f  %s %s%s%s\n", std::string(kernel.name).c_str(), spec.n,
                spec.k, m, std::string(tactic).c_str(), timing.median_us, timing.median_us / floor,
                judged ? (comparison.ok ? "ok" : "WRONG") : "", comparison.failure.c_str(),
                alone > 0 ? fmt::format(" (alone {:.2f})", alone).c_str() : "",
                asked ? fmt::format(" {} {:.2f}", met ? "met" : "MISSED", limit.us).c_str() : "");
    std::fflush(stdout);
  }

  const Arguments& arguments_;
  const ReadCeiling& ceiling_;
  std::string rows_;
  Verdicts verdicts_;
  std::optional<OwnedMatrix> many_;
  double bf16_us_ = 0;  // of this shape
};

Arguments read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--sweep")
      arguments.sweep = true;
    else if (word == "--no-large")
      arguments.large = false;
    else if (word == "--prefill")
      arguments.prefill = true;
    else if (word == "--kernels" && i + 1 < argc)
      arguments.kernels = argv[++i];
    else if (word == "--batch" && i + 1 < argc) {
      for (const std::string& m : split(argv[++i], ',')) arguments.batch.push_back(std::stoll(m));
    } else if (word == "--formats" && i + 1 < argc)
      arguments.formats = argv[++i];
    else if (word == "--shapes" && i + 1 < argc)
      arguments.shapes = argv[++i];
    else
      arguments.file = word;
  }
  if (arguments.batch.empty())
    arguments.batch =
        arguments.prefill ? std::vector<int64_t>{32, 64, 128, 256, 1024, 4096} : std::vector<int64_t>{1, 4, 8, 9, 16};
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read(argc, argv);
  const std::vector<DeviceProfile> devices = cuda_devices();
  if (devices.empty()) fail(cuda::no_device("cuda"));
  check(use_device(devices.front()));
  const ReadCeiling ceiling = measure_ceiling();
  std::printf("%s, driver %s: reading takes %.2f us + bytes / %.0f GB/s\n", devices.front().name.c_str(),
              devices.front().driver.c_str(), ceiling.start_us, ceiling.gbytes_per_s);
  Bench bench(arguments, ceiling);
  PrefillBench prefill(arguments.kernels, arguments.batch, arguments.sweep,
                       [&](double bytes) { return ceiling.floor_us(bytes); });
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    if (!arguments.has_shape(i)) continue;
    const auto [n, k] = std::pair(kShapes[i][0], kShapes[i][1]);
    if (arguments.prefill) {
      prefill.shape(n, k);
      continue;
    }
    if (arguments.large) bench.plain(n, k);
    for (const Case& c : cases()) {
      if (listed(arguments.formats, c.name)) bench.shape(c, n, k);
    }
  }
  std::printf("%s", bench.verdicts().text().c_str());
  if (arguments.file.empty()) return 0;
  std::ofstream out(arguments.file);
  out << cuda_document(command_line("bench_cuda_kernels", argc, argv), devices.front(), ceiling,
                       arguments.prefill ? prefill.rows() : bench.rows());
  return out.good() ? 0 : 1;
}
