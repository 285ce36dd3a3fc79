#include "layer/stored_bits.h"

#include "base/math.h"

namespace gearshift {
namespace {

// Column 8c + j of a word of AWQ is nibble kAwqOrder[j].
constexpr int kAwqOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};

bool is_gptq(Storage storage) { return storage == Storage::gptq_v1 || storage == Storage::gptq_v2; }
bool packs_rows_in_words(Storage storage) {
  return storage == Storage::awq || storage == Storage::quark_order || storage == Storage::quark_reorder;
}
// The scales of these lie [tile columns, rows], everywhere else [tile rows, tile columns].
bool columns_first(Storage storage) { return is_gptq(storage) || packs_rows_in_words(storage); }

// Nibble j of word `word`, eight rows of N a word.
int64_t nibble_in_word(Storage storage, int64_t word, int64_t row, int t) {
  const int64_t j = row % 8;
  return word * 32 + (storage == Storage::quark_order ? j : kAwqOrder[j]) * 4 + t;
}

}  // namespace

StoredExtents stored_extents(const Scheme& scheme, int64_t n, int64_t k) {
  const Grouping& grouping = scheme.weight.grouping;
  StoredExtents extents{n, k, 1, 1};
  if (!scheme.quantized || grouping.kind == Grouping::Kind::tensor) return extents;
  extents.tile_rows = n;
  if (grouping.kind == Grouping::Kind::block) extents.tile_rows = ceil_div(n, grouping.rows);
  if (grouping.kind == Grouping::Kind::block || grouping.kind == Grouping::Kind::group)
    extents.tile_cols = ceil_div(k, grouping.cols);
  return extents;
}

int code_width(const Scheme& scheme, DType weight_dtype) {
  if (scheme.weight.format == Format::float_) return bits(weight_dtype);
  // Stored one a byte, whatever the code needs.
  if (scheme.weight.storage == Storage::dense || scheme.weight.storage == Storage::dense_transposed) return 8;
  return bits(scheme.weight.format);
}

int64_t code_bit(Storage storage, int width, const StoredExtents& extents, int64_t n, int64_t k, int t) {
  const int64_t rows = extents.n, columns = extents.k;
  switch (storage) {
    case Storage::dense:
      return (n * columns + k) * width + t;
    case Storage::dense_transposed:
      return (k * rows + n) * width + t;
    case Storage::nibbles:
      return n * ceil_div(columns, 2) * 8 + k * 4 + t;
    case Storage::dense_bits:
      return n * ceil_div(columns * width, 32) * 32 + k * width + t;
    case Storage::word_bits: {
      const int64_t per_word = 32 / width;
      return (n * ceil_div(columns, per_word) + k / per_word) * 32 + k % per_word * width + t;
    }
    case Storage::gptq_v1:
    case Storage::gptq_v2: {
      const int64_t bit = k * width + t;
      return (bit / 32 * rows + n) * 32 + bit % 32;
    }
    case Storage::awq:
    case Storage::quark_order:
    case Storage::quark_reorder:
      return nibble_in_word(storage, k * ceil_div(rows, 8) + n / 8, n, t);
    case Storage::rows_in_byte:
      return (n / 2 * columns + k) * 8 + n % 2 * 4 + t;
    case Storage::fp6_bytes:
      return n * ceil_div(columns * 6, 8) * 8 + k * 6 + t;
  }
  return 0;
}

int64_t code_bytes(Storage storage, int width, const StoredExtents& extents) {
  const int64_t rows = extents.n, columns = extents.k;
  switch (storage) {
    case Storage::dense:
    case Storage::dense_transposed:
      return rows * columns * (width / 8);
    case Storage::nibbles:
      return rows * ceil_div(columns, 2);
    case Storage::dense_bits:
      return rows * ceil_div(columns * width, 32) * 4;
    case Storage::word_bits:
      return rows * ceil_div(columns, 32 / width) * 4;
    case Storage::gptq_v1:
    case Storage::gptq_v2:
      return ceil_div(columns * width, 32) * rows * 4;
    case Storage::awq:
    case Storage::quark_order:
    case Storage::quark_reorder:
      return columns * ceil_div(rows, 8) * 4;
    case Storage::rows_in_byte:
      return ceil_div(rows, 2) * columns;
    case Storage::fp6_bytes:
      return rows * ceil_div(columns * 6, 8);
  }
  return 0;
}

int64_t tile_index(const WeightScheme& weight, const StoredExtents& extents, int64_t tile_row, int64_t tile_col) {
  const bool grouped = weight.grouping.kind == Grouping::Kind::group;
  return grouped && columns_first(weight.storage) ? tile_col * extents.tile_rows + tile_row
                                                  : tile_row * extents.tile_cols + tile_col;
}

int64_t tile_count(const StoredExtents& extents) { return extents.tile_rows * extents.tile_cols; }

bool zeros_are_packed(const WeightScheme& weight, DType dtype) {
  const bool stream = weight.storage == Storage::dense_bits || weight.storage == Storage::word_bits;
  return columns_first(weight.storage) || (stream && dtype == DType::i32);
}

int64_t zero_bit(const WeightScheme& weight, int width, const StoredExtents& extents, int64_t n, int64_t tile_col,
                 int t) {
  const int64_t rows = extents.tile_rows, groups = extents.tile_cols;
  if (packs_rows_in_words(weight.storage))
    return nibble_in_word(weight.storage, tile_col * ceil_div(rows, 8) + n / 8, n, t);
  if (is_gptq(weight.storage)) return tile_col * ceil_div(rows * width, 32) * 32 + n * width + t;
  // compressed-tensors packs along the rows: [words of N, groups].
  if (weight.storage == Storage::word_bits) {
    const int64_t per_word = 32 / width;
    return (n / per_word * groups + tile_col) * 32 + n % per_word * width + t;
  }
  const int64_t bit = n * width + t;
  return (bit / 32 * groups + tile_col) * 32 + bit % 32;
}

uint64_t scale_bytes(const LayerSpec& layer) {
  if (!layer.scheme.quantized || layer.scheme.weight.grouping.kind == Grouping::Kind::tensor) return 0;
  const bool whole_table = layer.shard && layer.scheme.weight.act_order;
  uint64_t scales = 0;
  for (const Module& module : layer.modules) {
    StoredExtents extents = stored_extents(layer.scheme, module.n, layer.k);
    if (whole_table) extents.tile_cols = stored_extents(layer.scheme, module.n, layer.shard->whole->k).tile_cols;
    scales += static_cast<uint64_t>(tile_count(extents));
  }
  const uint64_t stacks = layer.stacked && layer.experts > 0 ? static_cast<uint64_t>(layer.experts) : 1;
  return scales * stacks * static_cast<uint64_t>(bits(layer.scheme.weight.scale)) / 8;
}

int64_t zero_point_bytes(const WeightScheme& weight, const StoredExtents& extents, DType dtype) {
  if (!zeros_are_packed(weight, dtype)) return tile_count(extents) * (bits(dtype) / 8);
  const int64_t rows = extents.tile_rows, width = bits(weight.format);
  const int64_t words = packs_rows_in_words(weight.storage)    ? ceil_div(rows, 8)
                        : weight.storage == Storage::word_bits ? ceil_div(rows, 32 / width)
                                                               : ceil_div(rows * width, 32);
  return words * extents.tile_cols * 4;
}

}  // namespace gearshift
