// The pieces of kernels over layout wide_rows16 (codes of one or two bytes), one version per instruction set.
//
// One tile of x takes codes decoded in registers; for several, a block of codes is decoded once into the first-level
// cache, in the form that the multiplier likes best. A sum over columns that share one scale is exact (integers) or
// fp32, and is added in the order of K: a row's bits depend on neither M, nor blocks, nor how rows share tiles.
#pragma once

#include <cstdint>

#include "gearshift/device.h"
#include "kernel/layout/wide_rows16.h"

namespace gearshift {

// The most columns of one block; spans (columns of one scale) are powers of two from 32 on and never straddle blocks.
inline constexpr int64_t kWideBlock = 1024;

// How a tile of x lies in memory; w is the number of its rows. One row alone is in the order of its columns.
enum class WideX : uint8_t {
  int8_fours,   // [column / 4][w][4]
  int16_fours,  // [column / 4][w][4]
  floats,       // [column][w]
  bf16_twos,    // [column / 2][w][2]
  int8_lines,   // [64 bytes of columns][w][64 bytes]
  bf16_lines
};
inline int64_t wide_x_bytes(WideX x) {
  return x == WideX::int8_fours || x == WideX::int8_lines ? 1 : x == WideX::floats ? 4 : 2;
}
// Bytes of a row that lie together.
inline int64_t wide_x_step(WideX x) {
  return x == WideX::int8_lines || x == WideX::bf16_lines ? 64 : x == WideX::int16_fours ? 8 : 4;
}

struct WideArgs {
  const uint8_t* weights;  // of the first panel, at the block
  int64_t stride;          // bytes to the same place of the next panel; 0 where there is none: its results are not used
  int64_t panels;          // that are there: fewer than WidePieces has only for the last ones of a part
  const void* x;           // the tile at the block
  int64_t columns;         // a multiple of 32
  int64_t w;               // rows of the tile
  // Floats whose scale changes along K: [span][16 * panels] and [span][w]; nullptr: sums are of codes alone.
  const float* scales;
  const float* x_scales;  // nullptr: ones
  int64_t span;
  void* sums;    // [w][16 * panels] int32 or fp32; added to
  bool fetches;  // of several tiles that take the same codes, the first fetches the next codes
};

struct WidePieces {
  int64_t panels = 1;  // side by side
  int64_t tile_rows = 1;
  WideX x = WideX::floats;
  bool integers = false;
  double unit = 1;  // what codes are multiplied by on top of their scale
  // Reads codes as packed. nullptr: only what decode() leaves can be multiplied.
  void (*multiply)(const WideArgs&) = nullptr;
  // Codes of one panel, `columns` of them -> what multiply_decoded() reads in the place of codes. nullptr: codes are as
  // quick for any number of tiles.
  void (*decode)(const uint8_t* codes, int64_t columns, uint8_t* out) = nullptr;
  void (*multiply_decoded)(const WideArgs&) = nullptr;
  int64_t decoded_bytes = 0;   // of one code
  int64_t block = kWideBlock;  // columns that several tiles take in turn: half of a first-level cache
  // For a single row of x: more panels side by side in the place of its other rows, for more sums in flight and more
  // streams of codes. nullptr: multiply() serves it.
  void (*multiply_one)(const WideArgs&) = nullptr;
  int64_t one_panels = 1;
  // After the last of some products: gives back what they set up for the thread. nullptr: nothing.
  void (*finish)() = nullptr;
};

// For m rows of x. `integers`: x is int8. `bf16`: x is exact in bf16. `tiles`: by AMX where there is one.
WidePieces wide_pieces(Isa isa, WideCode code, bool integers, bool bf16, bool tiles, int64_t m);

WidePieces wide_portable(WideCode code, bool integers);
#if defined(__x86_64__)
WidePieces wide_int8_avx2();
WidePieces wide_int8_vnni();
// fp32 products of any code, int8 included.
WidePieces wide_float_avx2(WideCode code);
WidePieces wide_float_avx512(WideCode code);
// Dots of bf16 pairs: bf16 and e4m3.
WidePieces wide_bf16_dot();
WidePieces wide_e4m3_dot();
WidePieces wide_int8_amx();
WidePieces wide_bf16_amx();
WidePieces wide_e4m3_amx();
// The multiplier of bf16 pairs by tiles of AMX: two panels, x by lines. release_tiles() ends a series of its calls.
void multiply_pairs_amx(const WideArgs& args);
void release_tiles();
// The same by dots, x in twos.
void multiply_pairs_dot(const WideArgs& args);
inline constexpr int64_t kPairDotRows = 14;
// bf16 pairs of e4m3 codes over 256; needs AVX-512.
void decode_e4m3_pairs(const uint8_t* codes, int64_t columns, uint8_t* pairs);
#endif

}  // namespace gearshift
