// Four-bit weights in panels of 16 rows, for kernels that decode in registers and for those that decode a panel at a
// time.
//
//   packed: [part][order, if columns have an order][panel = ceil(n / 16)][panel bytes]
//   order:  int32 [columns]     checkpoint column at each packed column, -1 past K; present with act-order only
//   panel:  codes | scales | zero points, filled up to a multiple of 64 bytes
//   codes:  chunk of 32 columns = 256 bytes; byte 64 j + 4 r + c   (j < 4, r < 16 rows, c < 4)
//             low nibble   code of row r, column 8 j + c
//             high nibble  code of row r, column 8 j + c + 4
//   scales: [groups][16] in the checkpoint's type
//   zero points: [groups][16] int8, present for weights that have them
//
// So one 64-byte load holds four columns of all 16 rows in its low nibbles and the next four in its high ones: what the
// four-way byte dot instructions want against a broadcast of four activations. Seen as 16-bit lanes, its nibbles are
// columns {0, 2}, {4, 6}, {1, 3}, {5, 7}: the pairs of the bf16 dot instructions. Seen as 32-bit lanes they are columns
// 0 4 1 5 2 6 3 7. A code is stored as the checkpoint has it, but that two's complement becomes offset binary (8 is 0).
// With act-order, columns are sorted by group, so that every group is contiguous. Rows past the end of a part and
// columns past K have code 0 and scale 0. Parts start on a panel of their own, so that a panel has one tensor-wide
// scale.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout nibbles_rows16;

inline constexpr int64_t kPanelRows = 16;
inline constexpr int64_t kChunkColumns = 32;
inline constexpr int64_t kChunkBytes = 256;

// Where things are in the packed bytes of a layer.
struct NibblesRows16 {
  explicit NibblesRows16(const LayerSpec& layer);

  int64_t k;            // columns in the checkpoint
  int64_t columns;      // rounded up to whole chunks
  bool grouped;         // or a row has one scale
  int64_t group;        // columns per scale; `columns` where a row has one
  int64_t groups;       // scales a row
  int64_t scale_bytes;  // of one scale
  bool zeros;
  bool ordered;

  int64_t codes_bytes() const { return columns / kChunkColumns * kChunkBytes; }
  int64_t scales_offset() const { return codes_bytes(); }
  int64_t zeros_offset() const { return scales_offset() + groups * kPanelRows * scale_bytes; }
  int64_t panel_bytes() const;
  int64_t order_bytes() const { return ordered ? (columns * 4 + 63) / 64 * 64 : 0; }
  static int64_t panels(int64_t n) { return (n + kPanelRows - 1) / kPanelRows; }
};

// The first word of the order where an index gives groups that are not all full: nothing else is packed then, because
// no panel can hold them.
inline constexpr int32_t kUnevenOrder = -2;

}  // namespace gearshift
