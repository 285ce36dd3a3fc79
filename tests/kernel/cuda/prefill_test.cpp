// The prefill kernel's schedule and choice of tactics, without a GPU.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>
#include <set>
#include <vector>

#include "format/e4m3.h"
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/prefill_tactics.h"
#include "kernel/cuda/stage/prefill_work.h"

namespace gearshift::testing {
namespace {

using cuda::PrefillSharing;
using cuda::PrefillSize;

const cuda::PrefillTable kTables[] = {
    {}, {cuda::prefill_row_tactics, false, 96}, {cuda::prefill_e4m3_tactics, false, 96}, {cuda::prefill_code_tactics}};

// Calls visit(tactic, schedule, size) for every tactic and sharing that makes sense, on sizes around every edge.
template <class Visit>
void every_schedule(const Visit& visit) {
  for (const int64_t slabs : {1, 9, 256, 897}) {
    for (const int64_t units : {1, 2, 23, 136}) {
      for (const int64_t m : {1, 33, 129, 2001}) {
        for (const int multiprocessors : {78, 132, 400}) {
          const PrefillSize size{slabs * 16 - 5, units, m, multiprocessors};
          for (const cuda::PrefillTable& table : kTables) {
            for (size_t t = 0; t < table.tactics.size(); ++t) {
              for (const PrefillSharing sharing :
                   {PrefillSharing::whole, PrefillSharing::shared, PrefillSharing::mixed}) {
                const auto schedule = cuda::schedule_prefill(table, static_cast<int>(t), sharing, size);
                if (schedule) visit(table.tactics[t], *schedule, size);
              }
            }
          }
        }
      }
    }
  }
}

TEST(PrefillWork, EveryStageOfEveryTileIsComputedOnceAndReachesItsEnd) {
  int walked = 0;
  every_schedule([&](const cuda::PrefillTactic& t, const cuda::PrefillSchedule& schedule, const PrefillSize& size) {
    cuda::PrefillCall call;
    call.row_tiles = schedule.row_tiles;
    call.token_tiles = schedule.token_tiles;
    call.whole_tiles = schedule.whole_tiles;
    call.band = 1024 / t.tokens;
    const int stages = static_cast<int>((size.units + t.units - 1) / t.units), cluster = cuda::prefill_cluster(t);
    ASSERT_EQ(schedule.blocks % cluster, 0);
    ASSERT_LE(schedule.blocks, cuda::prefill_most_blocks);
    const int workers = schedule.blocks / cluster, tiles = call.row_tiles * call.token_tiles;
    // Warpgroups that copy and warpgroups that multiply meet once in such a cluster: a second tile would never end.
    if (t.split > 1) {
      ASSERT_LE(tiles, workers);
    }
    // A tile's stages in order: how far they are computed, by which worker last, and whether that was its end.
    std::vector<int> seen(static_cast<size_t>(tiles) * static_cast<size_t>(stages));
    for (int worker = 0; worker < workers; ++worker) {
      for (int rank = 0; rank < t.split; ++rank) {
        cuda::PrefillWork work(call, stages, workers, worker, t.split, rank);
        cuda::PrefillPiece piece;
        bool inherited = false;
        while (work.next(piece)) {
          ASSERT_LT(piece.first, piece.last);
          ASSERT_LE(piece.last, stages);
          ASSERT_LT(piece.tile, tiles);
          // What waits for other blocks comes last.
          ASSERT_FALSE(inherited);
          inherited = t.split == 1 && piece.first > 0 && piece.last == stages;
          for (int s = piece.first; s < piece.last; ++s)
            ++seen[static_cast<size_t>(piece.tile) * static_cast<size_t>(stages) + static_cast<size_t>(s)];
        }
      }
    }
    for (const int times : seen) ASSERT_EQ(times, 1);
    ++walked;
  });
  EXPECT_GT(walked, 500);
}

TEST(PrefillWork, BandsVisitEveryTileOnce) {
  cuda::PrefillCall call;
  call.row_tiles = 7;
  for (const int token_tiles : {1, 3, 4, 5, 9}) {
    call.token_tiles = token_tiles;
    call.band = 4;
    std::set<std::pair<int, int>> seen;
    for (int tile = 0; tile < 7 * token_tiles; ++tile) {
      const cuda::PrefillTile at = cuda::tile_of(call, tile);
      EXPECT_TRUE(at.row >= 0 && at.row < 7 && at.token >= 0 && at.token < token_tiles);
      EXPECT_TRUE(seen.insert({at.row, at.token}).second);
    }
  }
}

TEST(PrefillTactics, StagesFitIntoSharedMemory) {
  for (const cuda::PrefillTactic& t : cuda::prefill_tactics) {
    for (const int unit_bytes : {1056, 1088, 1152, 1280}) {
      EXPECT_GE(cuda::prefill_stages(t, {unit_bytes, 2, 0}), 2) << t.tokens;
      EXPECT_LE(cuda::prefill_shared_bytes(t, {unit_bytes, 2, 0}), 232448) << t.tokens;
    }
  }
  for (const cuda::PrefillTactic& t : cuda::prefill_code_tactics) {
    EXPECT_GE(cuda::prefill_stages(t, {2048, 2, 0}), 2) << t.tokens;
    EXPECT_LE(cuda::prefill_shared_bytes(t, {2048, 2, 0}), 232448) << t.tokens;
  }
  for (const cuda::PrefillTactic& t : cuda::prefill_row_tactics) {
    EXPECT_GE(cuda::prefill_stages(t, {2048, 1, 4}), 2) << t.tokens;
    EXPECT_LE(cuda::prefill_shared_bytes(t, {2048, 1, 4}), 232448) << t.tokens;
  }
  for (const cuda::PrefillTactic& t : cuda::prefill_e4m3_tactics) {
    EXPECT_GE(cuda::prefill_stages(t, {1088, 1, 0}), 2) << t.tokens;
    EXPECT_LE(cuda::prefill_shared_bytes(t, {1088, 1, 0}), 232448) << t.tokens;
  }
}

// What was fastest on an H200, or within a few per cent of it.
TEST(PrefillTactics, ChoicesAreThoseThatWereMeasured) {
  const auto chosen = [](const cuda::PrefillTable& table, int64_t n, int64_t k, int64_t m) {
    const PrefillSize size{n, k / 128, m, 132, table.tactics.data() == cuda::prefill_tactics.data() ? 0 : n * k};
    return table.tactics[static_cast<size_t>(cuda::choose_prefill(table, size).tactic)];
  };
  EXPECT_EQ(chosen({}, 28672, 8192, 32).tokens, 32);
  EXPECT_EQ(chosen({}, 8192, 8192, 64).tokens, 64);
  EXPECT_EQ(chosen({}, 4096, 4096, 64).split, 2);
  EXPECT_EQ(chosen({}, 28672, 8192, 256).tokens, 256);
  EXPECT_EQ(chosen({}, 28672, 8192, 4096).multicast, 2);
  EXPECT_EQ(chosen(kTables[1], 8192, 8192, 32).tokens, 32);
  EXPECT_LE(chosen(kTables[1], 28672, 8192, 4096).tokens, 192);
  cuda::PrefillTable rare;
  rare.rare = true;
  EXPECT_TRUE(chosen(rare, 4096, 4096, 64).everywhere);
}

// a . b as FP8 tensor cores add: 32 products a step, aligned to the largest of them and of the sum so far, without what
// lies 13 bits below it.
// Numbers below `least` are no normal ones: their exponent is that of `least`.
double tensor_core_sum(const std::vector<double>& a, const std::vector<double>& b, double least = 0x1p-9) {
  const auto exponent = [&](double v) { return std::max(std::ilogb(v), std::ilogb(least)); };
  double sum = 0;
  for (size_t step = 0; step < a.size(); step += 32) {
    int largest = sum == 0 ? -100 : std::ilogb(sum);
    for (size_t i = step; i < step + 32; ++i) {
      if (a[i] * b[i] != 0) largest = std::max(largest, std::ilogb(a[i]) + exponent(b[i]));
    }
    const double unit = std::ldexp(1.0, largest - 13);
    sum = std::trunc(sum / unit) * unit;
    for (size_t i = step; i < step + 32; ++i) sum += std::trunc(a[i] * b[i] / unit) * unit;
  }
  return sum;
}

// Weights of any code and tokens with outliers, so that one product may dwarf the rest of the 256 columns.
TEST(PrefillSums, WhatTensorCoresDropIsWithinTheBound) {
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  double worst = 0;
  for (int row = 0; row < 4000; ++row) {
    std::vector<double> x(256), w(256);
    double exact = 0, magnitude = 0;
    for (size_t k = 0; k < 256; ++k) {
      const float value = normal(random) * (random() % 64 == 0 ? 60.0f : 4.0f);
      x[k] = format::decode_e4m3(format::encode_e4m3(value));
      auto code = static_cast<uint8_t>(random());
      if ((code & 0x7f) == 0x7f) code ^= 1;  // NaN
      w[k] = format::decode_e4m3(code);
      exact += x[k] * w[k];
      magnitude += std::fabs(x[k] * w[k]);
    }
    worst = std::max(worst, std::fabs(tensor_core_sum(x, w) - exact) / magnitude);
  }
  EXPECT_GT(worst, 0x1p-13);
  for (const Kernel* kernel : {&sm90_fp8_w8a8_prefill, &sm90_fp8_w8a8_invariant, &sm90_fp8_block_w8a8_prefill,
                               &sm90_fp8_block_w8a8_invariant, &sm89_fp8_w8a8_cublaslt})
    EXPECT_LE(worst, kernel->bound_product) << kernel->name;
}

// Four-bit weights as the kernels hand them to the tensor core: integers are no normal numbers of e4m3 (up to 7 of
// 2^-9), blocks of e2m1 lie up to 11 binades apart.
TEST(PrefillSums, WhatFourBitWeightsLoseIsWithinTheBound) {
  const uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  constexpr double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  double worst[2] = {};
  for (int row = 0; row < 8000; ++row) {
    const bool integers = row % 2 == 0;
    const size_t columns = integers ? 128 : 256;
    std::vector<double> x(columns), w(columns);
    double exact = 0, magnitude = 0;
    int shift = 0;
    for (size_t k = 0; k < columns; ++k) {
      const float value = normal(random) * (random() % 64 == 0 ? 60.0f : 4.0f);
      x[k] = format::decode_e4m3(format::encode_e4m3(value));
      if (k % 32 == 0) shift = static_cast<int>(random() % 12) - 5;
      w[k] = integers ? std::ldexp(static_cast<double>(random() % 16) - 8, -9)
                      : std::ldexp(e2m1[random() % 8] * (random() % 2 == 0 ? 1 : -1), shift);
      exact += x[k] * w[k];
      magnitude += std::fabs(x[k] * w[k]);
    }
    double& found = worst[integers ? 0 : 1];
    found = std::max(found, std::fabs(tensor_core_sum(x, w, 0x1p-6) - exact) / magnitude);
  }
  std::cout << "worst " << worst[0] << " " << worst[1] << "\n";
  EXPECT_GT(worst[0], 0x1p-13);
  EXPECT_GT(worst[1], 0x1p-13);
  EXPECT_LE(worst[0], sm90_int4_fp8_prefill.bound_product);
  EXPECT_LE(worst[1], sm90_mxfp4_fp8_prefill.bound_product);
}

TEST(PrefillTactics, NamesFindThemselves) {
  for (const cuda::PrefillTable& table : kTables) {
    std::set<std::string_view> seen;
    for (const std::string_view name : cuda::prefill_tactic_names(table)) {
      EXPECT_TRUE(seen.insert(name).second) << name << " names two tactics";
      EXPECT_GE(cuda::find_prefill_tactic(table, name).tactic, 0) << name;
    }
    EXPECT_GT(seen.size(), 10u);
    EXPECT_LT(cuda::find_prefill_tactic(table, "fast").tactic, 0);
  }
  EXPECT_LT(cuda::find_prefill_tactic(kTables[1], "n256f1w2s1m2-whole").tactic, 0);
}

}  // namespace
}  // namespace gearshift::testing
