// Codes row by row and their scales in the tiles that block-scaled tensor cores read: NVFP4 and MXFP8.
//
//   codes    [N][K] of 4 bits (the even column low, as stored) or of a byte; rows padded to 16 bytes with zeros
//   scales   [part][tile of 128 rows][tile of 4 groups] of 512 bytes: the byte of row r and group g of a tile at
//            r % 32 * 16 + r / 32 * 4 + g; bytes as stored (e4m3 or e8m0), zeros past the rows and groups there are
//            (cuBLAS documentation, "1D Block Scaling Factors Layout")
//   factors  [N] fp32: tensor-wide scales
//   bias     [N] fp32, where there is one
// Sections start on 256 bytes. unpack() gives codes, and scales in checkpoint order.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Layout scaled_tiles;

// Where the sections of a layer begin; -1 where it has none.
struct ScaledTiles {
  int64_t columns = 0;    // of a padded row
  int64_t row_bytes = 0;  // of codes
  int64_t group = 0, groups = 0, group_tiles = 0;
  int64_t scales = 0, factors = 0, bias = -1, bytes = 0;
};
ScaledTiles scaled_tiles_of(const LayerSpec& layer);
// Where the scales of a part begin, from those of the layer.
int64_t scale_tiles_of_part(const LayerSpec& layer, size_t part);

}  // namespace gearshift
