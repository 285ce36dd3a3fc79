// Every CUDA kernel on every scheme that its contract accepts, held against the float64 reference element by element.
// Needs a device: part of gpu-check, not of `make test`. A new kernel needs no new test.
#include <iostream>
#include <set>

#include "device_case.h"
#include "kernel/cuda/kernels.h"
#include "kernel/schemes.h"

namespace gearshift::testing {
namespace {

uint64_t fresh_seed() {
  static const uint64_t seed = [] {
    const uint64_t drawn = std::random_device{}();
    std::cout << "seed " << drawn << "\n";
    return drawn;
  }();
  return seed;
}

bool serves(const Kernel& kernel, Family family) {
  return std::find(kernel.families.begin(), kernel.families.end(), family) != kernel.families.end();
}

bool rows_depend(const Kernel& kernel, const Scheme& scheme) {
  return kernel.activation == ActivationUse::as_checkpoint && scheme.activation && scheme.activation->dynamic &&
         scheme.activation->granularity == Granularity::tensor;
}

class EveryCudaKernel : public ::testing::TestWithParam<const Kernel*> {};

TEST_P(EveryCudaKernel, MatchesTheReferenceInsideItsContract) {
  const Kernel& kernel = *GetParam();
  std::mt19937_64 random(fresh_seed());
  const std::vector<std::pair<std::vector<int64_t>, int64_t>> shapes = {
      {{1}, 16}, {{17, 5}, 32}, {{64}, 160}, {{3, 49, 17}, 544}, {{320, 8}, 2048}};
  const DType dtypes[] = {DType::bf16, DType::f16};
  int ran = 0;
  for (const Named& scheme : all_schemes()) {
    if (!serves(kernel, scheme.family)) continue;
    for (const auto& [rows, k] : shapes) {
      for (const DType dtype : dtypes) {
        std::vector<int64_t> parts;
        for (int64_t n : rows) parts.push_back(up(n, scheme.n_multiple) * scheme.n_multiple);
        const MadeLayer layer(scheme, parts, up(k, scheme.k_multiple) * scheme.k_multiple, random(), random() % 2 == 0);
        if (refuses(kernel, layer.spec, gpu(), dtype)) continue;
        OnDevice device(layer);
        const int64_t most = kernel.contract.m.max == 0 ? 33 : kernel.contract.m.max;
        GuardedMatrix x(dtype, most, layer.spec.k, static_cast<int64_t>(random() % 3) * 8);
        fill_activations(x, most, layer.spec.k, random);
        const bool alone = rows_depend(kernel, scheme.scheme);
        const Answers all = answers(kernel, layer, x, most);
        for (int64_t m : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{8}, int64_t{9}, most}) {
          const Ran result = device.run(kernel, x, m, dtype, static_cast<int64_t>(random() % 4));
          const Verdict verdict =
              alone ? judge(kernel, layer, x, m, dtype, result) : judge(kernel, layer.spec, all, dtype, result);
          EXPECT_EQ(verdict.wrong, 0) << kernel.name << " on " << scheme.name << " N " << layer.spec.n << " K "
                                      << layer.spec.k << " M " << m << " " << name(dtype) << ": " << verdict.first;
          ++ran;
          if (HasFailure()) return;
        }
      }
    }
  }
  const auto& archs = kernel.contract.archs;
  const bool here = archs.empty() || std::find(archs.begin(), archs.end(), gpu().arch) != archs.end();
  EXPECT_EQ(ran > 0, here) << kernel.name << (here ? " could run here and was not covered" : " is for other devices");
  std::cout << "covered " << kernel.name << ": " << ran << " runs\n";
}

TEST_P(EveryCudaKernel, ZeroRowsGiveExactlyZeroAndBitsRepeat) {
  const Kernel& kernel = *GetParam();
  std::mt19937_64 random(fresh_seed() + 2);
  for (const Named& scheme : all_schemes()) {
    if (!serves(kernel, scheme.family)) continue;
    const MadeLayer layer(scheme, {96}, 1024, random());
    if (refuses(kernel, layer.spec, gpu(), DType::bf16)) continue;
    OnDevice device(layer);
    GuardedMatrix x(DType::bf16, 3, 1024, 0);
    fill_activations(x, 3, 1024, random);
    for (int64_t k = 0; k < 1024; ++k) x.set(1, k, 0);
    const Ran first = device.run(kernel, x, 3, DType::bf16), second = device.run(kernel, x, 3, DType::bf16);
    EXPECT_EQ(first.y, second.y) << kernel.name << " on " << scheme.name << " changes from call to call";
    if (rows_depend(kernel, scheme.scheme)) continue;
    for (int64_t n = 0; n < 96; ++n)
      ASSERT_EQ(first.y[static_cast<size_t>(96 + n)], 0) << kernel.name << " on " << scheme.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryCudaKernel, ::testing::ValuesIn(cuda_kernels()),
                         [](const auto& kernel) { return std::string(kernel.param->name); });

// Every tactic of the streaming kernels that fits this device, on rows that no slab count divides.
TEST(StreamTactics, EveryOneGivesTheSameNumbers) {
  std::mt19937_64 random(fresh_seed() + 3);
  const std::tuple<const Kernel*, const char*, int64_t> formats[] = {
      {&sm80_nvfp4_w4a16_stream, "nvfp4 weight only", 16},
      {&sm80_mxfp4_stream, "mxfp4 weight only", 32},
      {&sm80_int4_w4a16_stream, "int4 packed", 128},
      {&sm80_int4_w4a16_stream, "int4 packed", 64},
      {&sm80_int4_w4a16_stream, "int4 packed", 32},
      {&sm80_int4_w4a16_stream, "awq", 128},
      {&sm80_int4_w4a16_stream, "awq", 64},
      {&sm80_int4_w4a16_stream, "awq", 32},
      {&sm80_w8a16_fp8_stream, "fp8 channel bf16", 0},
      {&sm80_w8a16_fp8_stream, "fp8 block", 128},
      {&sm80_mxfp8_stream, "mxfp8 weight only", 32},
      {&sm80_int8_w8a16_stream, "int8 packed channel", 0}};
  for (const auto& [kernel, scheme, group] : formats) {
    Named named = scheme_named(scheme);
    if (group > 0) named.scheme.weight.grouping.cols = group;
    const MadeLayer layer(named, {16 * 29 + 8, 40}, 5120, random());
    ASSERT_FALSE(refuses(*kernel, layer.spec, gpu(), DType::bf16));
    OnDevice device(layer);
    GuardedMatrix x(DType::bf16, 16, 5120, 0);
    fill_activations(x, 16, 5120, random);
    const Answers all = answers(*kernel, layer, x, 16);
    int ran = 0;
    for (const std::string_view tactic : kernel->tactics) {
      const int64_t m = tactic.substr(0, 2) == "t1" ? 8 : 16;
      const Ran result = device.run(*kernel, x, m, DType::bf16, 0, tactic);
      // What does not fit is refused as a whole: NaN everywhere.
      if (std::all_of(result.y.begin(), result.y.end(), [](double y) { return y != y; })) continue;
      const Verdict verdict = judge(*kernel, layer.spec, all, DType::bf16, result);
      EXPECT_EQ(verdict.wrong, 0) << kernel->name << " " << scheme << " " << tactic << ": " << verdict.first;
      ++ran;
    }
    EXPECT_GT(ran, 10) << scheme;
    std::cout << scheme << ", groups of " << group << ": " << ran << " tactics\n";
  }
}

// Every tactic of the prefill kernels, with more tokens and rows than one tile, fewer than two, and neither a multiple.
TEST(PrefillTactics, EveryOneGivesTheSameNumbers) {
  std::mt19937_64 random(fresh_seed() + 8);
  const std::tuple<const Kernel*, const char*, int64_t> formats[] = {
      {&sm90_nvfp4_w4a16_prefill, "nvfp4 weight only", 16},
      {&sm90_mxfp4_prefill, "mxfp4 weight only", 32},
      {&sm90_int4_w4a16_prefill, "int4 packed", 128},
      {&sm90_int4_w4a16_prefill, "int4 packed", 64},
      {&sm90_int4_w4a16_prefill, "int4 packed", 32},
      {&sm90_int4_w4a16_prefill, "awq", 128},
      {&sm90_int4_w4a16_prefill, "awq", 64},
      {&sm90_int4_w4a16_prefill, "awq", 32},
      {&sm90_nvfp4_w4a4_prefill, "nvfp4 compressed-tensors", 16},
      {&sm90_mxfp4_fp8_prefill, "mxfp4 fp8 token", 32},
      {&sm90_int4_w4a8_prefill, "int4 int8", 128},
      {&sm90_int4_w4a8_prefill, "int4 fp8 token", 64},
      {&sm90_int4_fp8_prefill, "int4 fp8 token", 128},
      {&sm90_int4_fp8_prefill, "int4 fp8", 256},
      {&sm90_w8a16_fp8_prefill, "fp8 channel bf16", 0},
      {&sm90_w8a16_fp8_prefill, "fp8 block", 128},
      {&sm90_int8_w8a16_prefill, "int8 packed channel", 0},
      {&sm90_int8_w8a16_prefill, "int8 dense", 128},
      {&sm90_mxfp8_prefill, "mxfp8 weight only", 32},
      {&sm90_mxfp8_prefill, "mxfp8", 32},
      {&sm90_mxfp6_prefill, "mxfp6 e2m3", 32},
      {&sm90_mxfp6_prefill, "mxfp6 e3m2", 32},
      {&sm90_fp8_w8a8_prefill, "fp8 channel token", 0},
      {&sm90_fp8_block_w8a8_prefill, "fp8 block", 128},
      {&sm90_int8_w8a8_prefill, "int8 channel token", 0}};
  for (const auto& [kernel, scheme, group] : formats) {
    Named named = scheme_named(scheme);
    Grouping& grouping = named.scheme.weight.grouping;
    if (group > 0) grouping.cols = group;
    if (group > 0 && grouping.kind == Grouping::Kind::row) grouping = {Grouping::Kind::group, 1, group};
    const MadeLayer layer(named, {16 * 29 + 8, 40}, 2944, random());
    if (refuses(*kernel, layer.spec, gpu(), DType::bf16)) {
      EXPECT_NE(gpu().arch, "sm_90") << kernel->name;
      continue;
    }
    OnDevice device(layer);
    GuardedMatrix x(DType::bf16, 289, 2944, 0);
    fill_activations(x, 289, 2944, random);
    const Answers all = answers(*kernel, layer, x, 289);
    int ran = 0;
    for (const std::string_view tactic : kernel->tactics) {
      for (const int64_t m : {33, 289}) {
        const Ran result = device.run(*kernel, x, m, DType::bf16, 0, tactic);
        // What makes no sense here, or does not exist for the format, is refused as a whole: NaN everywhere.
        if (std::all_of(result.y.begin(), result.y.end(), [](double y) { return y != y; })) continue;
        const Verdict verdict = judge(*kernel, layer.spec, all, DType::bf16, result);
        EXPECT_EQ(verdict.wrong, 0) << kernel->name << " " << scheme << " " << tactic << ": " << verdict.first;
        EXPECT_EQ(result.y, device.run(*kernel, x, m, DType::bf16, 0, tactic).y) << kernel->name << " " << tactic;
        ++ran;
      }
    }
    EXPECT_GT(ran, 10) << scheme;
    std::cout << scheme << ", groups of " << group << ": " << ran << " runs of prefill tactics\n";
  }
}

// Scales of a row far apart, and tokens that see only the small ones: what no single sum of FP8 products holds.
TEST(PrefillPasses, RowsOfAnyScalesAreExact) {
  std::mt19937_64 random(fresh_seed() + 10);
  const Kernel& kernel = sm90_mxfp4_fp8_prefill;
  constexpr int64_t n = 344, k = 1184, blocks = k / 32, m = 65;
  MadeLayer layer(scheme_named("mxfp4 fp8 token"), {n}, k, random());
  std::vector<uint8_t> scales(n * blocks);
  for (int64_t row = 0; row < n; ++row) {
    const int apart[] = {0, 12, 30, 70};
    for (int64_t block = 0; block < blocks; ++block)
      scales[static_cast<size_t>(row * blocks + block)] =
          static_cast<uint8_t>(120 + random() % 8 - (block % 5 == 0 ? apart[row % 4] : 0));
  }
  layer.weights.parts[0].scale = scales;
  if (refuses(kernel, layer.spec, gpu(), DType::bf16)) {
    EXPECT_NE(gpu().arch, "sm_90");
    return;
  }
  GuardedMatrix x(DType::bf16, m, k, 0);
  fill_activations(x, m, k, random);
  for (int64_t row = 0; row < m; row += 2) {
    for (int64_t column = 0; column < k; ++column) {
      if (column / 32 % 5 != 0) x.set(row, column, 0);
    }
  }
  OnDevice device(layer);
  const Answers all = answers(kernel, layer, x, m);
  int ran = 0;
  for (const std::string_view tactic : kernel.tactics) {
    const Ran result = device.run(kernel, x, m, DType::bf16, 0, tactic);
    if (std::all_of(result.y.begin(), result.y.end(), [](double y) { return y != y; })) continue;
    const Verdict verdict = judge(kernel, layer.spec, all, DType::bf16, result);
    EXPECT_EQ(verdict.wrong, 0) << tactic << ": " << verdict.first;
    ++ran;
  }
  EXPECT_GT(ran, 5);
}

// Work is captured, replayed, and measured: no launch may allocate or wait.
TEST(Case69, EveryKernelMayBeCapturedInAGraph) {
  std::mt19937_64 random(fresh_seed() + 4);
  for (const Kernel* kernel : cuda_kernels()) {
    for (const Named& scheme : all_schemes()) {
      if (!serves(*kernel, scheme.family)) continue;
      const MadeLayer layer(scheme, {64}, 256, random());
      if (refuses(*kernel, layer.spec, gpu(), DType::bf16)) continue;
      OnDevice device(layer);
      GuardedMatrix x(DType::bf16, 5, 256, 0);
      fill_activations(x, 5, 256, random);
      DeviceTimerLimits once;
      once.samples = 1;
      once.graph_us = 1;
      once.rotated_bytes = 1;
      const auto timing = time_on_device(*kernel, device.for_kernel(*kernel), x.const_matrix(), 0, "", once);
      EXPECT_TRUE(timing.ok()) << kernel->name << " on " << scheme.name << ": "
                               << (timing.ok() ? "" : timing.error().message());
      break;
    }
  }
}

// All weights 6 * 448 * 2^-10, x = 1: the raw sum 11010048 is far above what fp16 holds, the result 10752 is not.
TEST(Case07, NoOverflowBeforeTheGlobalScale) {
  MadeLayer layer(scheme_named("nvfp4 weight only"), {128}, 4096, 7);
  const std::vector<uint8_t> codes(128 * 2048, 0x77), scales(128 * 256, 0x7E);
  layer.spec.scheme.weight.global_divides = false;
  layer.weights.parts[0].weight = codes;
  layer.weights.parts[0].scale = scales;
  layer.weights.parts[0].weight_global = 0x1p-10f;
  int ran = 0;
  for (const ListEntry& entry : builtin_registry().find(Platform::cuda, Family::nvfp4_w4a16)->entries) {
    const Kernel& kernel = *entry.kernel;
    for (const DType dtype : {DType::f16, DType::bf16}) {
      if (kernel.platform != Platform::cuda || refuses(kernel, layer.spec, gpu(), dtype)) continue;
      OnDevice device(layer);
      for (int64_t m : {1, 16, 64, 256}) {
        if (kernel.contract.m.max != 0 && m > kernel.contract.m.max) continue;
        GuardedMatrix x(dtype, m, 4096, 0);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t k = 0; k < 4096; ++k) x.set(i, k, 1);
        }
        for (const double y : device.run(kernel, x, m, dtype).y) ASSERT_EQ(y, 10752) << kernel.name << " M " << m;
        ++ran;
      }
    }
  }
  EXPECT_GT(ran, 8);
}

// Outputs past 2^31 bytes: the last rows are as right as the first.
TEST(Case10, OutputBeyondTwoGigabytes) {
  const Kernel& kernel = sm80_int8_w8a8_emulation;
  const MadeLayer layer(scheme_named("int8 channel token"), {28672}, 16, 10);
  const auto prepared_layer = std::make_unique<OnDevice>(layer);
  const PreparedLayer& prepared = prepared_layer->for_kernel(kernel);
  std::mt19937_64 random(fresh_seed() + 5);
  for (const int64_t m : {int64_t{74898}, int64_t{74899}}) {
    std::vector<uint16_t> x(static_cast<size_t>(m * 16));
    std::normal_distribution<float> normal;
    for (uint16_t& value : x) value = format::encode_bf16(normal(random));
    const ConstMatrix view{x.data(), DType::bf16, m, 16, 16};
    auto x_there = DeviceBuffer::allocate(x.size() * 2), y = DeviceBuffer::allocate(static_cast<size_t>(m) * 28672 * 2);
    auto workspace = DeviceBuffer::allocate(static_cast<size_t>(kernel.workspace_bytes(layer.spec, m, 1)));
    ASSERT_TRUE(x_there.ok() && y.ok() && workspace.ok());
    ASSERT_TRUE(x_there->write(x.data(), x.size() * 2).ok());
    RunArgs args;
    args.weights = &prepared.weights[0];
    args.packed = prepared.packed_for(kernel);
    args.x = view;
    args.x.data = x_there->data();
    args.y = {y->data(), DType::bf16, m, 28672, 28672};
    args.workspace = workspace->span();
    kernel.run(args);
    std::vector<uint16_t> out(static_cast<size_t>(m) * 28672);
    ASSERT_TRUE(y->read(out.data(), out.size() * 2).ok());
    const std::vector<int64_t> rows = {0, 1, 8191, 8192, 37448, 37449, m - 2, m - 1};
    std::vector<double> wanted(rows.size() * 28672), magnitude(wanted.size());
    reference_rows(layer.weights, view, rows, kernel.activation, wanted.data(), magnitude.data(), kHostThreads);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double found = format::decode_bf16(out[static_cast<size_t>(rows[i / 28672]) * 28672 + i % 28672]);
      ASSERT_TRUE(within_bound(kernel, 16, magnitude[i], wanted[i], found, DType::bf16))
          << "row " << rows[i / 28672] << " column " << i % 28672 << ": " << found << " instead of " << wanted[i];
    }
  }
}

// Rows computed alone and in batches around the places where kernels and tiles change.
TEST(Case73, ARowHasTheSameBitsInEveryBatch) {
  std::mt19937_64 random(fresh_seed() + 9);
  for (const Kernel* kernel : cuda_kernels()) {
    if (!kernel->contract.bits_same_for_any_m) continue;
    for (const Named& scheme : all_schemes()) {
      if (!serves(*kernel, scheme.family)) continue;
      const MadeLayer layer(scheme, {4096}, 4096, random());
      if (refuses(*kernel, layer.spec, gpu(), DType::bf16)) continue;
      OnDevice device(layer);
      GuardedMatrix x(DType::bf16, 256, 4096, 0);
      fill_activations(x, 256, 4096, random);
      const Ran whole = device.run(*kernel, x, 256, DType::bf16);
      for (const int64_t m : {1, 2, 31, 32, 33}) {
        const Ran some = device.run(*kernel, x, m, DType::bf16);
        EXPECT_TRUE(std::equal(some.y.begin(), some.y.end(), whole.y.begin()))
            << kernel->name << " on " << scheme.name << ", M " << m;
      }
    }
  }
}

struct ShapeCase {
  const char* scheme;
  int64_t n, k;
  std::vector<int64_t> batch;
};
void check_case(const ShapeCase& c) {
  std::mt19937_64 random(fresh_seed() + 6);
  const MadeLayer layer(scheme_named(c.scheme), {c.n}, c.k, random());
  const int64_t most = *std::max_element(c.batch.begin(), c.batch.end());
  GuardedMatrix x(DType::bf16, most, c.k, 0);
  fill_activations(x, most, c.k, random);
  OnDevice device(layer);
  int ran = 0;
  for (const ListEntry& entry : builtin_registry().find(Platform::cuda, layer.spec.family)->entries) {
    const Kernel& kernel = *entry.kernel;
    if (kernel.platform != Platform::cuda || refuses(kernel, layer.spec, gpu(), DType::bf16)) continue;
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < most; i += 1 + most / 40) rows.push_back(i);
    rows.push_back(most - 1);
    const size_t n = static_cast<size_t>(c.n);
    std::vector<double> wanted(rows.size() * n), magnitude(rows.size() * n);
    reference_rows(layer.weights, x.const_matrix(), rows, kernel.activation, wanted.data(), magnitude.data(),
                   kHostThreads);
    for (const int64_t m : c.batch) {
      if (kernel.contract.m.max != 0 && m > kernel.contract.m.max) continue;
      const Ran result = device.run(kernel, x, m, DType::bf16);
      for (size_t i = 0; i < rows.size(); ++i) {
        if (rows[i] >= m) continue;
        for (size_t column = 0; column < n; ++column) {
          const double found = result.y[static_cast<size_t>(rows[i]) * n + column];
          ASSERT_TRUE(within_bound(kernel, c.k, magnitude[i * n + column], wanted[i * n + column], found, DType::bf16))
              << kernel.name << " M " << m << " row " << rows[i] << " column " << column << ": " << found
              << " instead of " << wanted[i * n + column];
        }
      }
      ++ran;
    }
  }
  EXPECT_GT(ran, 0);
}

TEST(Case12, SmallBatchesOfANvfp4LayerWithManyScales) {
  check_case({"nvfp4 compressed-tensors", 4096, 11008, {1, 5, 32, 127, 128, 129}});
}
TEST(PrefillTails, RowsColumnsAndTokensOffEveryTile) {
  check_case({"nvfp4 weight only", 73448, 2880, {33, 129}});
  check_case({"nvfp4 weight only", 2056, 3696, {33, 129, 2001}});
  check_case({"int4 packed", 2056, 2944, {33, 129, 2001}});
  check_case({"mxfp4 weight only", 1032, 2880, {33, 129, 2001}});
  check_case({"mxfp4 fp8 token", 73448, 2880, {33, 129}});
  check_case({"mxfp4 fp8 token", 2057, 3680, {1, 33, 129, 2001}});
  check_case({"int4 fp8 token", 2057, 3696, {1, 33, 129, 2001}});
  check_case({"fp8 tensor", 8193, 2880, {17, 129}});
  check_case({"fp8 channel bf16", 2055, 3696, {33, 129, 257, 2001}});
  check_case({"fp8 block", 2056, 3696, {33, 129, 257}});
  check_case({"int8 packed channel", 2055, 2880, {33, 129, 257, 2001}});
  check_case({"mxfp8 weight only", 1031, 2880, {33, 129, 2001}});
  check_case({"mxfp8", 1031, 3696, {33, 257}});
  check_case({"mxfp6 e2m3", 1032, 2880, {33, 129}});
  check_case({"mxfp6 e3m2", 1032, 2880, {33, 129}});
}
TEST(Case20, OddBatchSizes) { check_case({"fp8 block", 4096, 7168, {1, 2, 3, 5, 6, 7, 9, 31, 33}}); }
TEST(Case28, ATinyProjection) {
  check_case({"fp8 block", 16, 1024, {1, 64, 512}});
  check_case({"fp8 block", 6144, 1024, {1, 64, 512}});
  check_case({"mxfp8", 32, 1024, {1, 64, 512}});
}

TEST(Case74, EmptyBatchThenANormalOne) {
  std::mt19937_64 random(fresh_seed() + 7);
  for (const Kernel* kernel : cuda_kernels()) {
    for (const Named& scheme : all_schemes()) {
      if (!serves(*kernel, scheme.family)) continue;
      const MadeLayer layer(scheme, {256}, 256, random());
      if (refuses(*kernel, layer.spec, gpu(), DType::bf16)) continue;
      OnDevice device(layer);
      GuardedMatrix x(DType::bf16, 1, 256, 0);
      fill_activations(x, 1, 256, random);
      EXPECT_TRUE(device.run(*kernel, x, 0, DType::bf16).y.empty());
      const Ran ran = device.run(*kernel, x, 1, DType::bf16);
      EXPECT_EQ(judge(*kernel, layer, x, 1, DType::bf16, ran).wrong, 0) << kernel->name << " on " << scheme.name;
      break;
    }
  }
}

}  // namespace
}  // namespace gearshift::testing
