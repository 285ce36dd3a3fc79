#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <random>

#include "format/fp16.h"
#include "gearshift/measure.h"
#include "kernel/reference/reference.h"
#include "measure/activations.h"
#include "measure/judge.h"
#include "measure/made_up_layer.h"
#include "measure/poison.h"

namespace gearshift {
namespace {

constexpr int threads = 2;

uint64_t fresh_seed() {
  const uint64_t seed = std::random_device{}();
  testing::Test::RecordProperty("seed", std::to_string(seed));
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// The reference, with one deliberate fault added afterwards.
Kernel faulty(std::string_view name, void (*run)(const RunArgs&)) {
  Kernel kernel = reference_kernel;
  kernel.name = name;
  kernel.run = run;
  return kernel;
}

uint8_t* row_of(const RunArgs& args, int64_t row) {
  return static_cast<uint8_t*>(args.y.data) + row * args.y.stride * element_bytes(args.y.dtype);
}

Proof prove_on(const Kernel& kernel, MadeUpLayer& layer, int64_t m, DType dtype, uint64_t seed = 1) {
  EXPECT_TRUE(use_kernel(layer, kernel, threads).ok());
  return prove(kernel, layer.prepared, m, dtype, seed, threads);
}

// Each fault must be found, and named.
struct Fault {
  const char* name;
  void (*run)(const RunArgs&);
  const char* says;
};

const Fault faults[] = {
    {"column 7 is one percent off",
     [](const RunArgs& args) {
       reference_kernel.run(args);
       for (int64_t row = 0; row < args.y.rows; ++row) {
         store_element(row_of(args, row), args.y.dtype, 7, 1.01f * load_element(row_of(args, row), args.y.dtype, 7));
       }
     },
     "column 7"},
    {"one row is not written",
     [](const RunArgs& args) {
       RunArgs all_but_last = args;
       all_but_last.x.rows = --all_but_last.y.rows;
       reference_kernel.run(all_but_last);
     },
     "not written"},
    {"one element of one row is not written",
     [](const RunArgs& args) {
       uint8_t before[4];
       const int64_t size = element_bytes(args.y.dtype);
       uint8_t* element = row_of(args, args.y.rows - 1) + (args.y.cols - 1) * size;
       std::memcpy(before, element, static_cast<size_t>(size));
       reference_kernel.run(args);
       std::memcpy(element, before, static_cast<size_t>(size));
     },
     "not written"},
    {"adds to what is there",
     [](const RunArgs& args) {
       std::vector<float> before;
       for (int64_t row = 0; row < args.y.rows; ++row) {
         for (int64_t n = 0; n < args.y.cols; ++n) before.push_back(load_element(row_of(args, row), args.y.dtype, n));
       }
       reference_kernel.run(args);
       size_t i = 0;
       for (int64_t row = 0; row < args.y.rows; ++row) {
         for (int64_t n = 0; n < args.y.cols; ++n) {
           // NaN is dropped, as a maximum instruction would drop it: only the finite poison shows.
           const float old = before[i++];
           if (old == old)
             store_element(row_of(args, row), args.y.dtype, n, old + load_element(row_of(args, row), args.y.dtype, n));
         }
       }
     },
     "instead of"},
    {"writes behind its output",
     [](const RunArgs& args) {
       reference_kernel.run(args);
       row_of(args, args.y.rows)[0] = 1;
     },
     "behind its output"},
    {"writes before its output",
     [](const RunArgs& args) {
       reference_kernel.run(args);
       row_of(args, 0)[-1] = 1;
     },
     "before its output"},
    {"writes between two rows",
     [](const RunArgs& args) {
       reference_kernel.run(args);
       store_element(row_of(args, 0), args.y.dtype, args.y.cols, 0);
     },
     "between row 0"},
    {"one NaN",
     [](const RunArgs& args) {
       reference_kernel.run(args);
       store_element(row_of(args, args.y.rows - 1), args.y.dtype, 3, std::nanf(""));
     },
     "column 3"},
    {"ignores rows past the fourth",
     [](const RunArgs& args) {
       reference_kernel.run(args);
       for (int64_t row = 4; row < args.y.rows; ++row) {
         for (int64_t n = 0; n < args.y.cols; ++n) store_element(row_of(args, row), args.y.dtype, n, 0);
       }
     },
     "row 4"},
    {"a row of zeros gives something",
     [](const RunArgs& args) {
       reference_kernel.run(args);
       if (args.y.rows > 3) store_element(row_of(args, 3), args.y.dtype, 0, 1e-30f);
     },
     "row 3, column 0"},
};

TEST(Prove, EveryFaultIsFoundAndNamed) {
  const auto layer = make_up_layer(common_scheme(Family::bf16), {40, 8}, 192, fresh_seed());
  for (const DType dtype : {DType::bf16, DType::f32}) {
    EXPECT_TRUE(prove_on(reference_kernel, *layer, 11, dtype).comparison.ok);
    for (const Fault& fault : faults) {
      SCOPED_TRACE(fault.name);
      const Kernel kernel = faulty(fault.name, fault.run);
      const Proof proof = prove_on(kernel, *layer, 11, dtype);
      EXPECT_FALSE(proof.comparison.ok);
      EXPECT_NE(proof.comparison.failure.find(fault.says), std::string::npos) << proof.comparison.failure;
    }
  }
}

// A kernel that reads scratch before it writes it.
TEST(Prove, StaleScratchAndWritesPastIt) {
  const auto layer = make_up_layer(common_scheme(Family::bf16), {16}, 64, 5);
  Kernel stale = reference_kernel;
  stale.name = "stale";
  stale.workspace_bytes = [](const LayerSpec& spec, int64_t m, int count) {
    return reference_kernel.workspace_bytes(spec, m, count) + m * 4;
  };
  stale.run = [](const RunArgs& args) {
    reference_kernel.run(args);
    for (int64_t row = 0; row < args.y.rows; ++row) {
      float left;
      std::memcpy(&left, args.workspace.data() + args.workspace.size() - (row + 1) * 4, 4);
      store_element(row_of(args, row), args.y.dtype, 0, left + load_element(row_of(args, row), args.y.dtype, 0));
    }
  };
  EXPECT_FALSE(prove_on(stale, *layer, 3, DType::f32).comparison.ok);
  stale.run = [](const RunArgs& args) {
    reference_kernel.run(args);
    args.workspace.data()[args.workspace.size()] = 1;
  };
  EXPECT_NE(prove_on(stale, *layer, 3, DType::f32).comparison.failure.find("behind its workspace"), std::string::npos);
}

TEST(Prove, RightKernelsPassForEveryFamilyAndType) {
  const uint64_t seed = fresh_seed();
  for (const Family family : {Family::bf16, Family::nvfp4_w4a4, Family::nvfp4_w4a16, Family::fp8_w8a8}) {
    const auto layer = make_up_layer(common_scheme(family), {24, 40}, 256, seed, true);
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
      for (const int64_t m : {0, 1, 5, 37}) {
        const Proof proof = prove_on(reference_kernel, *layer, m, dtype, seed);
        EXPECT_TRUE(proof.comparison.ok) << name(family) << " " << name(dtype) << " m " << m << ": "
                                         << proof.comparison.failure;
        EXPECT_LE(proof.comparison.relative_error, proof.comparison.tolerance);
        EXPECT_LE(proof.comparison.worst_row, proof.comparison.tolerance);
        EXPECT_LE(proof.comparison.worst_column, proof.comparison.tolerance);
        EXPECT_EQ(proof.comparison.tolerance > 0, m > 0);
      }
    }
  }
}

TEST(Prove, HalfPrecisionAccumulatorIsFound) {
  const auto layer = make_up_layer(common_scheme(Family::bf16), {32}, 2048, fresh_seed(), false, DType::f16);
  const Kernel half = faulty("half accumulator", [](const RunArgs& args) {
    const PartWeights& part = args.weights->parts[0];
    for (int64_t row = 0; row < args.y.rows; ++row) {
      const auto* x = static_cast<const uint8_t*>(args.x.data) + row * args.x.stride * 2;
      for (int64_t n = 0; n < args.y.cols; ++n) {
        float sum = 0;
        for (int64_t k = 0; k < args.x.cols; ++k) {
          const float product =
              load_element(x, DType::f16, k) * load_element(part.weight.data(), DType::f16, n * args.x.cols + k);
          sum = format::decode_fp16(format::encode_fp16(sum + product));
        }
        store_element(row_of(args, row), DType::f16, n, sum);
      }
    }
  });
  EXPECT_FALSE(prove_on(half, *layer, 2, DType::f16).comparison.ok);
}

// A W4A4 layer run with 16-bit activations: judged in its own arithmetic, its distance to the checkpoint's beside it.
TEST(Prove, DivergenceOfUpgradedActivations) {
  const auto layer = make_up_layer(common_scheme(Family::nvfp4_w4a4), {64}, 256, fresh_seed());
  Kernel upgraded = reference_kernel;
  upgraded.name = "upgraded";
  upgraded.activation = ActivationUse::float16;
  upgraded.run = [](const RunArgs& args) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < args.x.rows; ++row) rows.push_back(row);
    std::vector<double> y(static_cast<size_t>(args.y.rows * args.y.cols));
    reference_rows(*args.weights, args.x, rows, ActivationUse::float16, y.data(), nullptr, args.threads);
    for (size_t i = 0; i < y.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      store_element(row_of(args, at / args.y.cols), args.y.dtype, at % args.y.cols, static_cast<float>(y[i]));
    }
  };
  const Proof proof = prove_on(upgraded, *layer, 8, DType::f32);
  EXPECT_TRUE(proof.comparison.ok) << proof.comparison.failure;
  ASSERT_TRUE(proof.comparison.divergence);
  EXPECT_GT(*proof.comparison.divergence, 0.01);
  EXPECT_LT(*proof.comparison.divergence, 0.5);
  EXPECT_FALSE(prove_on(reference_kernel, *layer, 8, DType::f32).comparison.divergence);

  // Claimed to be the checkpoint's arithmetic, the same numbers are wrong.
  upgraded.activation = ActivationUse::as_checkpoint;
  EXPECT_FALSE(prove_on(upgraded, *layer, 8, DType::f32).comparison.ok);
}

// All codes 6, all block scales 448, tensor-wide factor 2^-10: raw sums pass 65504, results are 10752.
TEST(Case07, OverflowBeforeTheGlobalScaleIsApplied) {
  const int64_t n = 128, k = 4096;
  Scheme scheme = common_scheme(Family::nvfp4_w4a16);
  scheme.weight.global_divides = false;
  const auto layer = make_up_layer(scheme, {n}, k, 1);
  std::fill(layer->stored[0].begin(), layer->stored[0].end(), 0x77);
  std::fill(layer->stored[1].begin(), layer->stored[1].end(), 0x7E);
  layer->prepared.weights[0].parts[0].weight_global = 0x1p-10f;
  ASSERT_TRUE(use_kernel(*layer, reference_kernel, threads).ok());

  for (const DType dtype : {DType::f16, DType::bf16}) {
    for (const int64_t m : {1, 16, 64}) {
      auto x = allocate_matrix(dtype, m, k, "x"), y = allocate_matrix(dtype, m, n, "y");
      for (int64_t i = 0; i < m * k; ++i) store_element(x->bytes.data(), dtype, i, 1);
      AlignedBuffer workspace(static_cast<size_t>(reference_kernel.workspace_bytes(layer->plan.layer, m, threads)));
      run_kernel(reference_kernel, layer->prepared, std::as_const(*x).view(), y->view(), workspace.span(), threads);
      for (int64_t i = 0; i < m * n; ++i) ASSERT_EQ(load_element(y->bytes.data(), dtype, i), 10752) << name(dtype);
    }
  }

  // Narrows the raw sum to the output type before it scales.
  const Kernel narrow = faulty("narrow", [](const RunArgs& args) {
    LayerWeights raw = *args.weights;
    raw.parts[0].weight_global = 1;
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < args.x.rows; ++row) rows.push_back(row);
    std::vector<double> sums(static_cast<size_t>(args.y.rows * args.y.cols));
    reference_rows(raw, args.x, rows, ActivationUse::float16, sums.data(), nullptr, args.threads);
    for (size_t i = 0; i < sums.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      uint8_t* row = row_of(args, at / args.y.cols);
      store_element(row, args.y.dtype, at % args.y.cols, static_cast<float>(sums[i]));
      store_element(row, args.y.dtype, at % args.y.cols, 0x1p-10f * load_element(row, args.y.dtype, at % args.y.cols));
    }
  });
  EXPECT_FALSE(prove_on(narrow, *layer, 16, DType::f16).comparison.ok);
  const Proof bf16 = prove_on(narrow, *layer, 16, DType::bf16);
  EXPECT_TRUE(bf16.comparison.ok) << bf16.comparison.failure;
}

TEST(Case14, ReferenceMustNotBeTheThingUnderTest) {
  const auto layer = make_up_layer(common_scheme(Family::bf16), {2048}, 1536, fresh_seed());
  const Kernel vendor = faulty("vendor", faults[0].run);
  for (const int64_t m : {1, 64}) {
    const Proof proof = prove_on(vendor, *layer, m, DType::bf16);
    EXPECT_FALSE(proof.comparison.ok);
    EXPECT_NE(proof.comparison.failure.find("column 7"), std::string::npos) << proof.comparison.failure;
  }
}

// A test of the test: scales in another order than the kernel reads them.
TEST(Case15, DeliberatelyWrongScaleLayout) {
  const int64_t n = 1024, k = 5120;
  const auto layer = make_up_layer(common_scheme(Family::nvfp4_w4a16), {n}, k, fresh_seed());
  ASSERT_TRUE(use_kernel(*layer, reference_kernel, threads).ok());
  auto x = allocate_matrix(DType::bf16, 1, k, "x"), y = allocate_matrix(DType::bf16, 1, n, "y");
  make_activations(x->view(), 3, threads, 1e6f);

  LayerWeights permuted = layer->prepared.weights[0];
  const ByteView scales = permuted.parts[0].scale;
  std::vector<uint8_t> transposed(scales.size());
  const size_t groups = static_cast<size_t>(k / 16);
  for (size_t i = 0; i < scales.size(); ++i) transposed[i % groups * static_cast<size_t>(n) + i / groups] = scales[i];
  permuted.parts[0].scale = transposed;
  const int64_t row = 0;
  std::vector<double> wrong(static_cast<size_t>(n)), right(wrong), magnitude(wrong);
  const ConstMatrix view = std::as_const(*x).view();
  reference_rows(permuted, view, {&row, 1}, ActivationUse::float16, wrong.data(), nullptr, threads);
  reference_rows(layer->prepared.weights[0], view, {&row, 1}, ActivationUse::float16, right.data(), magnitude.data(),
                 threads);
  int64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) {
    store_element(y->bytes.data(), DType::bf16, i, static_cast<float>(wrong[static_cast<size_t>(i)]));
    const auto at = static_cast<size_t>(i);
    outside += !within_bound(reference_kernel, k, magnitude[at], right[at],
                             load_element(y->bytes.data(), DType::bf16, i), DType::bf16);
  }
  EXPECT_GT(outside, n * 95 / 100);
  Judge judge(layer->prepared.weights[0], 1, threads);
  EXPECT_FALSE(judge.compare(reference_kernel, view, std::as_const(*y).view()).ok);
}

// Merging the parts' global scales by maximum puts one half off by their ratio.
TEST(Case46, MergedGlobalScalesFailTheSelfCheck) {
  const auto layer = make_up_layer(common_scheme(Family::nvfp4_w4a16), {64, 64}, 512, fresh_seed());
  auto& parts = layer->prepared.weights[0].parts;
  parts[1].weight_global = 2.14f * parts[0].weight_global;
  const Kernel merged = faulty("merged", [](const RunArgs& args) {
    LayerWeights copy = *args.weights;
    for (PartWeights& part : copy.parts)
      part.weight_global = std::max(copy.parts[0].weight_global, copy.parts[1].weight_global);
    RunArgs changed = args;
    changed.weights = &copy;
    reference_kernel.run(changed);
  });
  for (const int64_t m : {1, 64}) {
    EXPECT_TRUE(prove_on(reference_kernel, *layer, m, DType::bf16).comparison.ok);
    EXPECT_FALSE(prove_on(merged, *layer, m, DType::bf16).comparison.ok);
  }
}

TEST(RowsToJudge, AllOfFewAndASampleOfMany) {
  for (int64_t m = 0; m <= 32; ++m) EXPECT_EQ(rows_to_judge(m, 1).size(), static_cast<size_t>(m));
  for (const int64_t m : {33, 34, 63, 64, 4096, 100000}) {
    const auto rows = rows_to_judge(m, 7);
    EXPECT_GE(rows.size(), 32u);
    EXPECT_LE(rows.size(), 200u);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
    EXPECT_EQ(rows.front(), 0);
    EXPECT_EQ(rows.back(), m - 1);
  }
  // Smaller batches share their rows with larger ones, so that answers are computed once.
  const auto few = rows_to_judge(64, 7), many = rows_to_judge(4096, 7);
  EXPECT_TRUE(std::includes(many.begin(), many.end(), few.begin(), few.begin() + 34));
}

}  // namespace
}  // namespace gearshift
