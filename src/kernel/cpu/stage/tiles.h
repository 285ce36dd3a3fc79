// x on its way into tiles: loaded, quantized by the checkpoint's recipe, and laid out as the pieces' multiplier reads
// it.
#pragma once

#include "gearshift/kernel.h"
#include "kernel/cpu/stage/pieces.h"

namespace gearshift {

// Sizes of the tiles of one chunk of rows. Tiles of a version lie at equal distances; the last may have fewer rows, and
// is packed as tightly.
struct TileShape {
  int64_t rows = 0;  // of the chunk
  int64_t tile_rows = 1;
  int64_t columns = 0;  // padded to whole chunks of 32
  int64_t span = 0;     // columns per scale
  XOrder order = XOrder::floats;
  Correction correction = Correction::span;
  bool x_scales = false;

  int64_t tiles() const { return (rows + tile_rows - 1) / tile_rows; }
  int64_t width(int64_t tile) const {
    const int64_t left = rows - tile * tile_rows;
    return left < tile_rows ? left : tile_rows;
  }
  int64_t element_bytes() const { return order == XOrder::dwords ? 1 : is_bf16(order) ? 2 : 4; }
  int64_t spans() const { return (columns + span - 1) / span; }
  // Columns that one correction covers.
  int64_t unit() const { return correction == Correction::halfwords && span > 32 ? 32 : span; }
  int64_t units() const { return (columns + unit() - 1) / unit(); }
};

// Arrays of one version of x.
struct Tiles {
  uint8_t* x;           // [tiles][columns * tile_rows] elements
  int32_t* correction;  // [tiles][units * tile_rows]
  float* scales;        // [tiles][spans * tile_rows]
  double* factor;       // [rows]
};

// How x becomes what enters the product.
struct Activations {
  const RunArgs* args;
  const PartWeights* part;
  ActivationUse use;
  const int32_t* order;  // checkpoint column at each packed column, or nullptr
  float tensor_scale;    // of a dynamic per-tensor recipe
  int32_t bias;          // of weight codes (integer routes)
};

// Columns that are one item of work: fewer than a row where every recipe group can be made by itself.
int64_t segment_columns(const Activations& activations, const TileShape& shape);
// Segment `segment` of tile `tile`, whose first row is row m0 + tile * tile_rows of x. `scratch`: 3 * columns floats.
void pack_tile(const Activations& activations, const TileShape& shape, int64_t m0, int64_t tile, int64_t segment,
               const Tiles& tiles, float* scratch);

// Whether x is exact in bf16 once it is ready for the product.
bool exact_in_bf16(const Scheme& scheme, ActivationUse use, DType dtype);

}  // namespace gearshift
