// Codes of one byte or more (int8, fp8, fp6, floats) in panels of 16 output rows, K-major inside, so that a kernel
// reads forward streams and every vector holds the same columns of 16 rows:
//
//   panel        16 rows of one part; the last panel of a part may lack rows, whose codes are 0
//     codes      int8  [column / 4][16 rows][4]   q + 128: unsigned, as u8 x s8 dot products want their weights
//                e4m3  [column][16 rows]          as stored
//                       fp6 codes become the e4m3 code of the same value: e4m3 has all of them
//                bf16  [column / 2][16 rows][2]   as stored
//                f16   [column][16 rows]
//                f32   [column][16 rows]
//     row sums   int8 only: int32 [16], the sum of q over K
//     scales     [group][1 or 16 rows], in the checkpoint's type; one where all rows of a panel share it; float
//                weights have none
//
// Columns are padded with zeros to a multiple of 32, panels to a multiple of 64 bytes. Parts start on a panel of their
// own.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout wide_rows16;

inline constexpr int64_t kWideRows = 16;
inline constexpr int64_t kWideChunk = 32;  // columns

enum class WideCode : uint8_t { int8, e4m3, bf16, f16, f32 };

// Where things are in the packed bytes of a layer.
struct WideRows16 {
  explicit WideRows16(const LayerSpec& layer);

  WideCode code;
  int64_t k;            // columns in the checkpoint
  int64_t columns;      // padded
  int64_t groups;       // scales along K
  int64_t group;        // columns per scale; `columns` where there is one
  int64_t scale_rows;   // scales of a group in a panel: 0, 1 or 16
  int64_t scale_bytes;  // of one

  int64_t code_bytes() const {
    return code == WideCode::f32 ? 4 : code == WideCode::bf16 || code == WideCode::f16 ? 2 : 1;
  }
  bool float_codes() const { return code != WideCode::int8 && code != WideCode::e4m3; }
  int64_t codes_bytes() const { return columns * kWideRows * code_bytes(); }
  int64_t sums_offset() const { return codes_bytes(); }
  int64_t scales_offset() const { return codes_bytes() + (code == WideCode::int8 ? kWideRows * 4 : 0); }
  int64_t panel_bytes() const { return (scales_offset() + groups * scale_rows * scale_bytes + 63) / 64 * 64; }
  // Byte of row r, column k in a panel.
  int64_t place(int64_t r, int64_t column) const;
  static int64_t panels(int64_t n) { return (n + kWideRows - 1) / kWideRows; }
};

}  // namespace gearshift
