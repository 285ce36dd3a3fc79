// Variants of the prefill kernel (stage/prefill.cuh), and which one a call gets. Plain data, so that the choice can be
// looked at without a GPU.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gearshift::cuda {

// How tiles are given to blocks: every tile to one block, the columns of all tiles to all blocks in equal parts, or the
// first rounds whole and the rest in parts.
enum class PrefillSharing : uint8_t { whole, shared, mixed };

// Microseconds: start + unit * units of 128 columns on the busiest block, or what reading the weights takes, + end *
// tiles that the block ends. Fitted to an H200.
struct PrefillCost {
  double start, unit, end;
};

struct PrefillTactic {
  int tokens;      // of a tile
  int fragments;   // of 64 rows, per warpgroup
  int warpgroups;  // that multiply; one more copies
  int batch;       // steps of 32 bytes of K that are decoded at once
  int units;       // of 128 columns per stage
  int split;       // 2: the two blocks of a cluster share the columns of a tile, their only one
  int multicast;  // 2: the two blocks of a cluster have neighbouring rows, and each fetches half of the tokens for both
  bool everywhere;  // also for formats that are rarely met
  PrefillCost whole, shared;
};

// 128 rows suit all token counts; twice as many halve what is read of x, where there are enough rows. Splitting the
// columns in a cluster instead of between blocks saves the way through memory where few rows leave it all short (4096).
// A hand-over of two units costs half as often where products are short. Multicast pays where tokens are most of what
// is read. Those that start at 9 us have not been timed: only `tune` and requests get them.
inline constexpr std::array prefill_tactics = {
    PrefillTactic{32, 1, 2, 4, 2, 1, 1, true, {3.94, 0.3564, 0.00}, {4.63, 0.3655, 0.70}},
    PrefillTactic{32, 2, 2, 2, 1, 1, 1, false, {1.60, 0.7358, 0.00}, {3.63, 0.6840, 2.35}},
    PrefillTactic{32, 1, 1, 4, 1, 2, 1, false, {3.29, 0.2794, 0.00}, {}},
    PrefillTactic{64, 1, 2, 4, 2, 1, 1, true, {2.40, 0.4543, 0.75}, {4.03, 0.4660, 1.17}},
    PrefillTactic{64, 1, 1, 4, 1, 2, 1, false, {3.46, 0.3130, 0.00}, {}},
    PrefillTactic{64, 1, 2, 4, 1, 2, 1, false, {9.00, 0.4543, 0.00}, {}},
    PrefillTactic{64, 1, 3, 4, 1, 2, 1, false, {9.00, 0.5500, 0.00}, {}},
    PrefillTactic{96, 1, 2, 2, 1, 1, 1, false, {2.75, 0.5989, 0.09}, {4.84, 0.6098, 1.21}},
    PrefillTactic{128, 1, 2, 2, 1, 1, 1, true, {0.41, 0.7199, 2.31}, {4.56, 0.7594, 1.53}},
    PrefillTactic{128, 2, 2, 1, 1, 1, 1, false, {1.49, 1.2595, 3.98}, {10.77, 1.2846, 2.71}},
    PrefillTactic{128, 1, 1, 2, 1, 2, 1, false, {4.65, 0.4180, 0.00}, {}},
    PrefillTactic{128, 1, 2, 2, 1, 2, 1, false, {9.00, 0.7199, 0.00}, {}},
    PrefillTactic{128, 1, 3, 2, 1, 2, 1, false, {9.00, 0.9500, 0.00}, {}},
    PrefillTactic{128, 1, 2, 2, 1, 1, 2, false, {2.88, 0.6980, 1.80}, {5.39, 0.7140, 1.79}},
    PrefillTactic{192, 1, 2, 2, 1, 1, 1, false, {2.17, 0.9576, 2.44}, {7.20, 1.0378, 1.09}},
    PrefillTactic{192, 1, 2, 2, 1, 1, 2, false, {3.69, 0.9488, 2.19}, {10.36, 1.0065, 0.00}},
    PrefillTactic{256, 1, 2, 2, 1, 1, 1, true, {1.89, 1.3155, 0.00}, {12.57, 1.3696, 0.00}},
    PrefillTactic{256, 1, 2, 2, 1, 1, 2, false, {1.95, 1.2400, 3.36}, {10.56, 1.2799, 1.70}}};

// The same for codes of a byte each, row by row, that are decoded on their way through registers: twice the bytes of
// weights leave fewer stages, so wide tiles of tokens get rows rather than more tokens.
inline constexpr std::array prefill_code_tactics = {
    PrefillTactic{32, 1, 2, 4, 2, 1, 1, true, {3.94, 0.3564, 0.00}, {4.63, 0.3655, 0.70}},
    PrefillTactic{32, 1, 1, 4, 2, 2, 1, false, {3.29, 0.2794, 0.00}, {}},
    PrefillTactic{64, 1, 2, 4, 1, 1, 1, true, {2.40, 0.4543, 0.75}, {4.03, 0.4660, 1.17}},
    PrefillTactic{64, 1, 1, 4, 1, 2, 1, false, {3.46, 0.3130, 0.00}, {}},
    PrefillTactic{64, 1, 2, 4, 1, 2, 1, false, {4.00, 0.4543, 0.00}, {}},
    PrefillTactic{128, 1, 2, 2, 1, 1, 1, true, {0.41, 0.7199, 2.31}, {4.56, 0.7594, 1.53}},
    PrefillTactic{128, 1, 1, 2, 1, 2, 1, false, {4.65, 0.4180, 0.00}, {}},
    PrefillTactic{128, 1, 2, 2, 1, 2, 1, false, {4.65, 0.7199, 0.00}, {}},
    PrefillTactic{128, 1, 2, 2, 1, 1, 2, false, {2.88, 0.6980, 1.80}, {5.39, 0.7140, 1.79}},
    PrefillTactic{128, 2, 2, 1, 1, 1, 1, true, {1.49, 1.2595, 3.98}, {10.77, 1.2846, 2.71}},
    PrefillTactic{128, 2, 2, 1, 1, 1, 2, false, {1.95, 1.2500, 3.98}, {10.77, 1.2700, 2.71}},
    PrefillTactic{192, 1, 2, 2, 1, 1, 1, true, {2.17, 0.9576, 2.44}, {7.20, 1.0378, 1.09}},
    PrefillTactic{192, 1, 2, 2, 1, 1, 2, false, {3.69, 0.9488, 2.19}, {10.36, 1.0065, 0.00}},
    PrefillTactic{256, 1, 2, 2, 1, 1, 2, false, {1.95, 1.2600, 3.36}, {10.56, 1.3000, 1.70}}};

// The same for 8-bit codes row by row, which products read from shared memory: they need no registers for weights, and
// no batch. Tiles of 256 tokens leave no room for two sets of sums.
inline constexpr std::array prefill_row_tactics = {
    PrefillTactic{32, 1, 2, 4, 2, 1, 1, true, {3.20, 0.24, 2.50}, {3.20, 0.35, 0.58}},
    PrefillTactic{32, 1, 1, 4, 2, 2, 1, true, {3.20, 0.20, 0.44}, {}},
    PrefillTactic{64, 1, 2, 4, 2, 1, 1, true, {4.76, 0.32, 1.38}, {3.20, 0.37, 1.83}},
    PrefillTactic{64, 1, 1, 4, 2, 2, 1, true, {3.20, 0.23, 0.91}, {}},
    PrefillTactic{128, 1, 2, 4, 1, 1, 1, true, {3.86, 0.39, 3.97}, {5.10, 0.54, 2.29}},
    PrefillTactic{128, 1, 1, 4, 1, 2, 1, true, {3.20, 0.32, 3.34}, {}},
    PrefillTactic{128, 1, 2, 4, 1, 1, 2, true, {5.42, 0.37, 4.30}, {6.00, 0.50, 2.60}},
    PrefillTactic{128, 2, 2, 4, 1, 1, 1, true, {4.89, 0.66, 8.51}, {3.20, 0.80, 9.00}},
    PrefillTactic{192, 1, 2, 4, 1, 1, 1, true, {7.15, 0.62, 4.06}, {3.20, 0.80, 4.53}},
    PrefillTactic{192, 1, 2, 4, 1, 1, 2, true, {7.83, 0.58, 4.33}, {10.56, 0.68, 2.57}},
    PrefillTactic{256, 1, 2, 4, 1, 1, 1, true, {3.20, 0.63, 9.61}, {3.20, 0.75, 7.35}},
    PrefillTactic{256, 1, 2, 4, 1, 1, 2, true, {4.58, 0.62, 9.77}, {1.33, 0.72, 8.39}}};

// The same for four-bit weights in FP8 products: they last half as long as those of bf16, so that stages hold twice the
// columns, and sums are there twice. Fitted up to 256 tokens.
inline constexpr std::array prefill_e4m3_tactics = {
    PrefillTactic{32, 1, 2, 4, 2, 1, 1, true, {0.22, 0.3267, 1.37}, {7.54, 0.3631, 0.00}},
    PrefillTactic{32, 2, 2, 2, 2, 1, 1, true, {0.00, 0.5020, 3.97}, {9.69, 0.6519, 0.00}},
    PrefillTactic{32, 1, 1, 4, 2, 2, 1, true, {4.90, 0.2152, 0.00}, {}},
    PrefillTactic{64, 1, 2, 4, 2, 1, 1, true, {1.19, 0.3917, 2.51}, {9.08, 0.4586, 0.00}},
    PrefillTactic{64, 2, 2, 2, 2, 1, 1, true, {0.00, 0.6548, 5.83}, {13.92, 0.8190, 0.00}},
    PrefillTactic{64, 1, 1, 4, 2, 2, 1, true, {0.00, 0.6145, 0.00}, {}},
    PrefillTactic{128, 1, 2, 2, 2, 1, 1, true, {1.33, 0.5633, 4.84}, {12.67, 0.6992, 0.00}},
    PrefillTactic{128, 1, 1, 2, 2, 2, 1, true, {1.05, 0.7353, 0.00}, {}},
    PrefillTactic{128, 1, 2, 2, 2, 1, 2, true, {0.74, 0.5421, 5.89}, {13.45, 0.6839, 0.00}},
    PrefillTactic{192, 1, 2, 1, 2, 1, 1, true, {0.00, 0.6845, 8.01}, {17.61, 0.8960, 0.00}},
    PrefillTactic{192, 1, 2, 1, 2, 1, 2, true, {0.00, 0.6658, 8.81}, {20.32, 0.8031, 0.00}}};

constexpr int prefill_rows(const PrefillTactic& t) { return 64 * t.fragments * t.warpgroups; }
constexpr int prefill_cluster(const PrefillTactic& t) { return t.split * t.multicast; }
constexpr int prefill_threads(const PrefillTactic& t) { return (t.warpgroups + 1) * 128; }
// Registers per thread of the warpgroups that multiply and of the one that copies: together no more than a block is
// launched with, or they would be waited for for ever.
constexpr int prefill_product_registers(const PrefillTactic& t) { return t.warpgroups > 2 ? 152 : 232; }
inline constexpr int prefill_copy_registers = 40;
// Of a format: 16 rows x 128 columns of weights, an element of x, and a token's scales per 128 columns.
struct PrefillBytes {
  int unit = 0, element = 2, token_scale = 0;
};
// A stage: tokens first, in rows of 128 bytes, then the weights, then scales of tokens.
constexpr int prefill_x_bytes(const PrefillTactic& t, PrefillBytes b) { return t.tokens * 128 * b.element * t.units; }
constexpr int prefill_weight_bytes(const PrefillTactic& t, PrefillBytes b) {
  return prefill_rows(t) / 16 * b.unit * t.units;
}
constexpr int prefill_scale_bytes(const PrefillTactic& t, PrefillBytes b) { return t.tokens * b.token_scale * t.units; }
constexpr int prefill_stage_bytes(const PrefillTactic& t, PrefillBytes b) {
  return (prefill_x_bytes(t, b) + prefill_weight_bytes(t, b) + prefill_scale_bytes(t, b) + 1023) / 1024 * 1024;
}
// Half of a tile's sums.
constexpr int prefill_exchange_bytes(const PrefillTactic& t) {
  return t.split > 1 ? prefill_rows(t) * t.tokens * 2 : 0;
}
constexpr int prefill_stages(const PrefillTactic& t, PrefillBytes b) {
  return std::min(8, (224 * 1024 - prefill_exchange_bytes(t)) / prefill_stage_bytes(t, b));
}
constexpr int prefill_shared_bytes(const PrefillTactic& t, PrefillBytes b) {
  return prefill_stages(t, b) * prefill_stage_bytes(t, b) + prefill_exchange_bytes(t) + 1024;  // stages start on 1024
}

// Blocks that may leave sums for others, and room for what they leave.
inline constexpr int prefill_most_blocks = 160;
constexpr int64_t prefill_partial_bytes() {
  int64_t most = 0;
  for (const PrefillTactic& t : prefill_tactics) most = std::max<int64_t>(most, prefill_rows(t) * t.tokens * 4);
  for (const PrefillTactic& t : prefill_code_tactics) most = std::max<int64_t>(most, prefill_rows(t) * t.tokens * 4);
  for (const PrefillTactic& t : prefill_row_tactics) most = std::max<int64_t>(most, prefill_rows(t) * t.tokens * 4);
  for (const PrefillTactic& t : prefill_e4m3_tactics) most = std::max<int64_t>(most, prefill_rows(t) * t.tokens * 4);
  return most * prefill_most_blocks;
}

// One launch.
struct PrefillSize {
  int64_t rows = 0, units = 0, m = 0;  // units of 128 columns
  int multiprocessors = 132;
  int64_t weight_bytes = 0;  // where reading them may be all that it costs
};
// Which tactics a format has.
struct PrefillTable {
  std::span<const PrefillTactic> tactics = prefill_tactics;
  bool rare = false;    // only those that are `everywhere`
  int most_sums = 128;  // per thread
  int only_whole = 0;   // not 0: only whole tiles of 128 rows and so many tokens, so that no row's bits depend on M
  bool has(const PrefillTactic& t, PrefillSharing sharing) const {
    const bool whole = sharing == PrefillSharing::whole;
    if (t.split > 1 && !whole) return false;
    if (only_whole != 0 && !(whole && t.tokens == only_whole && prefill_rows(t) == 128 && prefill_cluster(t) == 1))
      return false;
    return (!rare || t.everywhere) && t.fragments * t.tokens / 2 <= most_sums;
  }
};
// How a tactic does it.
struct PrefillSchedule {
  int tactic = 0;
  PrefillSharing sharing = PrefillSharing::whole;
  int blocks = 0;
  int row_tiles = 0, token_tiles = 0, whole_tiles = 0;
  double us = 0;  // expected
};
// nullopt: this sharing makes no sense there.
std::optional<PrefillSchedule> schedule_prefill(const PrefillTable& table, int tactic, PrefillSharing sharing,
                                                const PrefillSize& size);
// The one that should be fastest.
PrefillSchedule choose_prefill(const PrefillTable& table, const PrefillSize& size);

struct PrefillChoice {
  int tactic = -1;
  PrefillSharing sharing = PrefillSharing::whole;
};
// By name; tactic -1 for an unknown one, or one that the table does not have.
PrefillChoice find_prefill_tactic(const PrefillTable& table, std::string_view name);
// They live as long as the program.
std::vector<std::string_view> prefill_tactic_names(const PrefillTable& table);
std::string prefill_tactic_name(const PrefillTable& table, const PrefillSchedule& schedule);

}  // namespace gearshift::cuda
