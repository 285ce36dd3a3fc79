// The pieces that kernels over panels of 16 rows are built from, one version per instruction set.
//
// A kernel walks K in blocks. For each block and panel group it turns scales into fp32, decodes the codes into a panel
// in the second-level cache (or leaves that to the multiplier, which then decodes in registers), and lets the
// multiplier add tile after tile of x to fp32 sums. Every sum over a span of columns with one scale is exact (integers)
// or fp32 (floats), is scaled once, and is added in the order of K: a row's bits depend on neither M nor the block.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "gearshift/device.h"
#include "gearshift/layer.h"

namespace gearshift {

// Columns of one block, and the most that one span has: spans are powers of two from 16 on, so they never straddle
// blocks.
inline constexpr int64_t kBlockColumns = 1024;

// What the sixteen codes of a four-bit format mean.
struct NibbleTable {
  alignas(64) std::array<float, 16> value;     // exact in bf16
  alignas(16) std::array<uint8_t, 16> biased;  // value * doubling + bias, for integer dots
  int32_t bias;                                // makes `biased` unsigned
  int32_t most;                                // of `biased`
};

// How a tile of x lies in memory. `w` is the number of its rows; columns are padded with zeros to whole chunks of 32.
enum class XOrder : uint8_t {
  dwords,       // int8 [column / 4][w][4]
  floats,       // fp32 [column][w]
  float_pairs,  // fp32 [pair][w][2]; per 8 columns the pairs 0 2, 1 3, 4 6, 5 7
  bf16_pairs,   // bf16 [pair][w][2]; per 8 columns the pairs 0 2, 4 6, 1 3, 5 7
  bf16_lines    // bf16 [32 columns][w][32]; the same order of columns
};
inline bool is_bf16(XOrder order) { return order == XOrder::bf16_pairs || order == XOrder::bf16_lines; }

// What starts the integer sums of a tile so that the bias of weight codes cancels: minus bias times the sum of x.
enum class Correction : uint8_t {
  span,      // int32 [span][w]
  halfwords  // two int16 a dword, [unit of min(span, 32) columns][w]: columns 0 1 | 2 3 of every four, summed apart
};

struct DecodeArgs {
  const uint8_t* codes;  // of the first panel, at the block
  int64_t panel_stride;  // bytes to the same place of the next panel
  int64_t panels;        // 1 to Pieces::panels; missing ones may hold anything
  int64_t columns;       // of the block, a multiple of 32
  const float* scales;   // [span][rows], see ProductArgs
  const float* zeros;    // nullptr: none
  int64_t span;
  const NibbleTable* table;
  bool folded;     // every product of a code and its scale is exact in the panel: it holds those
  uint8_t* panel;  // what the stage's multiplier reads
};

struct ProductArgs {
  const uint8_t* weights;  // codes of the first panel at the block, or the decoded panel
  int64_t panel_stride;    // of codes: bytes to the same place of the next panel
  int64_t panels;          // of codes: those that are there
  const float* scales;     // [span][rows], rows = 16 * Pieces::panels; nullptr where the panel has them inside
  const float* zeros;      // [span][rows]; nullptr: none, or inside the panel
  // For pieces that read scales as they are stored: [span][16] of the first panel, other panels panel_stride away.
  const uint8_t* stored_scales;
  DType stored_type;
  const uint8_t* stored_zeros;  // int8 [span][16]; nullptr: none
  // Bytes from what is read to what shall be fetched, for the same pieces.
  int64_t ahead;         // of codes
  int64_t scales_ahead;  // of scales
  int64_t span;          // columns per scale, a power of two, at most kBlockColumns
  int64_t columns;       // of the block
  const NibbleTable* table;
  bool folded;                // the panel has its scales inside
  const void* x;              // the tile at the block
  const int32_t* correction;  // integers: at the block, see Correction
  const float* x_scales;      // integers: [span][w]; nullptr: x has no scale per span
  int64_t w;                  // rows of the tile, 1 to Pieces::tile_rows
  float* sums;                // [w][rows]; added to
};

// What one instruction set gives to one route.
struct Pieces {
  int64_t panels = 1;         // of 16 rows, side by side
  int64_t tile_rows = 1;      // rows of x a multiplier takes at most
  int64_t panel_element = 0;  // bytes per weight of the decoded panel; 0: decodes in registers
  XOrder x = XOrder::floats;
  Correction correction = Correction::span;
  void (*decode)(const DecodeArgs&) = nullptr;
  void (*multiply)(const ProductArgs&) = nullptr;
  bool folds = false;          // knows panels with scales inside
  void (*finish)() = nullptr;  // after the last of some products: gives back what they set up for the thread
  bool stored_scales = false;  // reads scales as they are stored, and none past the last

  int64_t rows() const { return 16 * panels; }
};

// For a single row of x, four panels side by side take the place of its other rows: more sums are in flight, and more
// streams of codes.
inline constexpr int kOneRowPanels = 4;
struct CodesOfPanels {
  const uint8_t* at[kOneRowPanels];
  // Missing panels read the first.
  explicit CodesOfPanels(const ProductArgs& args) {
    for (int p = 0; p < kOneRowPanels; ++p) at[p] = args.weights + (p < args.panels ? p * args.panel_stride : 0);
  }
};

// Integer dots of codes: |x| <= 12 where the table's codes reach 24, int8 where they stop at 15. For m rows of x.
Pieces dot_registers(Isa isa, int64_t m);
Pieces dot_panel(Isa isa);
// Exact activations: fp32, or bf16 where `bf16` says that x is exact in it and the processor multiplies it.
Pieces float_registers(Isa isa, bool bf16, int64_t m);
Pieces float_panel(Isa isa, bool bf16, int64_t span);

// Scales of `groups` groups of one panel, checkpoint type -> fp32, to out[g * stride + r].
void decode_scales(Isa isa, DType dtype, const uint8_t* scales, int64_t groups, float* out, int64_t stride);

// k / span without a division.
inline int shift_of(int64_t span) { return std::countr_zero(static_cast<uint64_t>(span)); }

// ---- per instruction set, each in the file of its name --------------------------------------------------------------

Pieces dot_panel_portable();
Pieces float_panel_portable();
#if defined(__x86_64__)
Pieces dot_registers_avx2(int64_t m);
Pieces dot_panel_avx2();
Pieces float_registers_avx2(int64_t m);
Pieces float_panel_avx2();
// `vbmi`: the processor permutes bytes of 512 bits.
Pieces dot_registers_vnni(bool vbmi);
Pieces dot_panel_vnni();
Pieces float_registers_avx512(int64_t m);
Pieces float_panel_avx512();
Pieces bf16_registers();
Pieces bf16_panel_dot();
Pieces bf16_panel_amx();
#endif

}  // namespace gearshift
