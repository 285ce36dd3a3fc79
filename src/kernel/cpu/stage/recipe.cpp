// The engine: chunks of rows of x become tiles, then every thread takes panel groups and walks K in blocks.
#include "kernel/cpu/stage/recipe.h"

#include <omp.h>

#include <algorithm>

#include "format/e2m1.h"
#include "kernel/cpu/isa.h"
#include "kernel/cpu/stage/results.h"
#include "kernel/cpu/stage/tiles.h"
#include "kernel/cpu/team.h"
#include "kernel/layout/nibbles_rows16.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/activation.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

// Rows of x that share one pass over the weights.
constexpr int64_t kChunk = 256;
// How far ahead of their use codes and scales are fetched by multipliers that read both as stored, and columns that
// have as many bytes of codes.
constexpr int64_t kAheadBytes = 4096, kScalesAheadBytes = 512, kFetchedColumns = 512;
// Panel groups are handed out by rows of x too where there are fewer than this many items a thread.
constexpr int64_t kItemsPerThread = 4;
// Neighbouring groups that a thread takes at once: what is fetched beyond the end of one is the beginning of the next.
constexpr int64_t kRunsPerThread = 16;

constexpr NibbleTable e2m1_nibbles() {
  NibbleTable table{{}, {}, 12, 24};
  for (size_t i = 0; i < 16; ++i) {
    table.value[i] = format::e2m1_table[i];
    table.biased[i] = static_cast<uint8_t>(static_cast<int>(2 * table.value[i]) + 12);
  }
  return table;
}
constexpr NibbleTable integer_nibbles(int zero) {
  NibbleTable table{{}, {}, zero, 15};
  for (size_t i = 0; i < 16; ++i) {
    table.value[i] = static_cast<float>(static_cast<int>(i) - zero);
    table.biased[i] = static_cast<uint8_t>(i);
  }
  return table;
}
constexpr NibbleTable kE2m1 = e2m1_nibbles();
constexpr NibbleTable kOffsetBinary = integer_nibbles(8);
constexpr NibbleTable kUnsigned = integer_nibbles(0);

const NibbleTable& table_of(const WeightScheme& weight) {
  if (weight.format == Format::e2m1) return kE2m1;
  return weight.format == Format::uint4 && !weight.symmetric ? kUnsigned : kOffsetBinary;
}

bool integers(Route route) { return route == Route::dot_registers || route == Route::dot_panel; }

// Columns per scale.
int64_t span_of(const NibblesRows16& at) { return at.grouped ? at.group : kBlockColumns; }

Pieces pieces_of(Route route, Isa isa, bool bf16, int64_t span, int64_t m) {
  switch (route) {
    case Route::dot_registers:
      return dot_registers(isa, m);
    case Route::dot_panel:
      return dot_panel(isa);
    case Route::float_registers:
      return float_registers(isa, bf16, m);
    case Route::float_panel:
      break;
  }
  return float_panel(isa, bf16, span);
}

// Rows of x taken at a time: chunks of nearly equal size, so that the last is no small rest.
int64_t chunk_rows(int64_t m) {
  const int64_t chunks = (m + kChunk - 1) / kChunk;
  return chunks == 0 ? 0 : (m + chunks - 1) / chunks;
}

int64_t versions_of(const Recipe& recipe, const LayerSpec& layer) {
  if (layer.scheme.weight.act_order) return static_cast<int64_t>(part_count(layer));
  return activation_versions(layer, recipe.use);
}

TileShape tile_shape(const Recipe& recipe, const Pieces& pieces, const LayerSpec& layer, const NibblesRows16& at,
                     int64_t rows) {
  TileShape shape;
  shape.rows = rows;
  // Of nearly equal size: a last one of few rows would cost as much as a whole one.
  const int64_t tiles = std::max<int64_t>(1, (rows + pieces.tile_rows - 1) / pieces.tile_rows);
  shape.tile_rows = std::max<int64_t>(1, (rows + tiles - 1) / tiles);
  shape.columns = at.columns;
  shape.span = span_of(at);
  shape.order = pieces.x;
  shape.correction = pieces.correction;
  shape.x_scales = integers(recipe.route) && layer.scheme.activation->granularity == Granularity::token_group;
  return shape;
}

// One thread's own memory.
struct ThreadScratch {
  float* rows;     // [3][columns]: rows of x on their way
  float* scales;   // [spans of a block][rows of a panel group]
  float* zeros;    // as many
  uint8_t* panel;  // a decoded block
  float* sums;     // [rows of the chunk][rows of a panel group]
  double* bias;    // [rows of a panel group]
};

struct Scratch {
  Tiles tiles;  // of version 0
  int64_t x_bytes, corrections, scales;
  ThreadScratch thread;  // of thread 0
  int64_t thread_bytes;

  Tiles version(int64_t v, int64_t chunk) const {
    return {tiles.x + v * x_bytes, tiles.correction + v * corrections, tiles.scales + v * scales,
            tiles.factor + v * chunk};
  }
  ThreadScratch of(int64_t number) const {
    const auto moved = [&](auto* at) {
      return reinterpret_cast<decltype(at)>(reinterpret_cast<uint8_t*>(at) + number * thread_bytes);
    };
    return {moved(thread.rows),  moved(thread.scales), moved(thread.zeros),
            moved(thread.panel), moved(thread.sums),   moved(thread.bias)};
  }
};

int64_t carve_scratch(const Pieces& pieces, const TileShape& shape, bool zeros, int64_t versions, int threads,
                      uint8_t* base, Scratch& scratch) {
  Carver carver(base);
  const int64_t padded = shape.tiles() * shape.tile_rows;
  const auto aligned = [](int64_t bytes) { return (bytes + 63) / 64 * 64; };
  const bool codes = shape.order == XOrder::dwords;
  scratch.x_bytes = aligned(padded * shape.columns * shape.element_bytes());
  scratch.corrections = codes ? aligned(padded * shape.units() * 4) / 4 : 0;
  scratch.scales = shape.x_scales ? aligned(padded * shape.spans() * 4) / 4 : 0;
  scratch.tiles.x = carver.take<uint8_t>(versions * scratch.x_bytes);
  scratch.tiles.correction = carver.take<int32_t>(versions * scratch.corrections);
  scratch.tiles.scales = carver.take<float>(versions * scratch.scales);
  scratch.tiles.factor = carver.take<double>(versions * shape.rows);
  const int64_t before = carver.used();
  const int64_t spans = kBlockColumns / shape.span;
  scratch.thread.rows = carver.take<float>(3 * shape.columns);
  scratch.thread.scales = carver.take<float>(spans * pieces.rows());
  scratch.thread.zeros = carver.take<float>(zeros ? spans * pieces.rows() : 0);
  scratch.thread.panel = carver.take<uint8_t>(kBlockColumns * pieces.rows() * pieces.panel_element);
  scratch.thread.sums = carver.take<float>(shape.rows * pieces.rows());
  scratch.thread.bias = carver.take<double>(pieces.rows());
  // A line between threads, so that no two of them write neighbouring lines that are fetched in pairs.
  scratch.thread_bytes = carver.used() - before + 64;
  return before + threads * scratch.thread_bytes;
}

struct Call {
  const Recipe& recipe;
  const RunArgs& args;
  const NibblesRows16& at;
  const Pieces& pieces;
  Isa isa;
  const NibbleTable& table;
  double product;  // what a product of codes counts: 1/4 where both are doubled
};

// fp32 scales (and zero points) of a block of panel group `panels`, one row of 16 per panel and span.
void decode_block_scales(const Call& call, const uint8_t* panel, int64_t panels, int64_t span, int64_t k0,
                         int64_t columns, const ThreadScratch& scratch) {
  const WeightScheme& weight = call.args.weights->spec->scheme.weight;
  const int64_t stride = call.pieces.rows();
  const int64_t first = call.at.grouped ? k0 / span : 0;
  const int64_t spans = (columns + span - 1) / span;
  const int64_t groups = std::min(spans, call.at.groups - first);
  // Columns past K may be spans of their own: no scale is stored for them.
  std::fill(scratch.scales + groups * stride, scratch.scales + spans * stride, 0.0f);
  if (call.at.zeros) std::fill(scratch.zeros + groups * stride, scratch.zeros + spans * stride, 0.0f);
  for (int64_t p = 0; p < panels; ++p, panel += call.at.panel_bytes()) {
    const uint8_t* scales = panel + call.at.scales_offset() + first * kPanelRows * call.at.scale_bytes;
    decode_scales(call.isa, weight.scale, scales, groups, scratch.scales + p * kPanelRows, stride);
    if (!call.at.zeros) continue;
    const auto* zeros = reinterpret_cast<const int8_t*>(panel + call.at.zeros_offset() + first * kPanelRows);
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t r = 0; r < kPanelRows; ++r)
        scratch.zeros[g * stride + p * kPanelRows + r] = zeros[g * kPanelRows + r];
    }
  }
}

struct Item {
  size_t part;
  const uint8_t* packed;  // panels of the part
  int64_t panel;          // the first of the group
  int64_t panels;
  int64_t tile, tiles;  // the range of tiles
};

// Whether all products of codes and scales of a block are exact in bf16 and far from where it ends: e4m3 scales add
// four bits to the two of a code, powers of two add none.
bool scales_fold(const Call& call, const uint8_t* panel, int64_t panels, int64_t k0, int64_t columns) {
  const WeightScheme& weight = call.args.weights->spec->scheme.weight;
  if (weight.format != Format::e2m1) return false;
  if (weight.scale == DType::f8_e4m3) return true;
  if (weight.scale != DType::f8_e8m0) return false;
  const int64_t first = k0 / call.at.group;
  const int64_t count = std::min((columns + call.at.group - 1) / call.at.group, call.at.groups - first) * kPanelRows;
  uint8_t low = 127, high = 127;  // exponents, biased: 2^0
  for (int64_t p = 0; p < panels; ++p, panel += call.at.panel_bytes()) {
    const uint8_t* exponents = panel + call.at.scales_offset() + first * kPanelRows;
    for (int64_t i = 0; i < count; ++i) {
      low = std::min(low, exponents[i]);
      high = std::max(high, exponents[i]);
    }
  }
  return low >= 127 - 60 && high <= 127 + 60;
}

void multiply_item(const Call& call, const Item& item, const TileShape& shape, const Tiles& tiles,
                   const ThreadScratch& scratch) {
  const Pieces& pieces = call.pieces;
  const int64_t rows = pieces.rows();
  const uint8_t* panel = item.packed + item.panel * call.at.panel_bytes();
  float* sums = scratch.sums;
  const int64_t m_first = item.tile * shape.tile_rows;
  const int64_t m_end = std::min(m_first + item.tiles * shape.tile_rows, shape.rows);
  std::fill(sums, sums + (m_end - m_first) * rows, 0.0f);
  const float* zeros = call.at.zeros ? scratch.zeros : nullptr;
  const DType stored_type = call.args.weights->spec->scheme.weight.scale;
  // The last columns fetch the first ones of the panels that follow.
  const int64_t fetched = std::max(kFetchedColumns, shape.span);
  const int64_t last = std::max<int64_t>(0, shape.columns - fetched) / fetched * fetched;
  const bool follows = item.panel + 2 * pieces.panels <= NibblesRows16::panels(call.args.weights->parts[item.part].n);
  int64_t step = 0;
  for (int64_t k0 = 0; k0 < shape.columns; k0 += step) {
    step = std::min(kBlockColumns, k0 < last ? last - k0 : shape.columns - k0);
    const int64_t first_group = call.at.grouped ? k0 / shape.span : 0;
    int64_t columns = step, ahead = kAheadBytes, scales_ahead = kScalesAheadBytes;
    if (pieces.stored_scales) {
      if (k0 >= last && follows) {
        const int64_t next = pieces.panels * call.at.panel_bytes();
        ahead = next - k0 / kChunkColumns * kChunkBytes;
        scales_ahead = next - first_group * kPanelRows * call.at.scale_bytes;
      }
      // Columns past K may be spans of their own: no scale is stored for them.
      columns = std::min(step, (call.at.groups - first_group) * shape.span);
    } else {
      decode_block_scales(call, panel, item.panels, shape.span, k0, columns, scratch);
    }
    const bool folded = pieces.folds && scales_fold(call, panel, item.panels, k0, columns);
    const uint8_t* weights = panel + k0 / kChunkColumns * kChunkBytes;
    if (pieces.decode != nullptr) {
      pieces.decode({weights, call.at.panel_bytes(), item.panels, columns, scratch.scales, zeros, shape.span,
                     &call.table, folded, scratch.panel});
      weights = scratch.panel;
    }
    for (int64_t tile = item.tile; tile < item.tile + item.tiles; ++tile) {
      const int64_t w = shape.width(tile);
      const int64_t base = tile * shape.tile_rows;
      ProductArgs product;
      product.weights = weights;
      product.panel_stride = call.at.panel_bytes();
      product.panels = item.panels;
      product.scales = scratch.scales;
      product.zeros = zeros;
      product.stored_scales = panel + call.at.scales_offset() + first_group * kPanelRows * call.at.scale_bytes;
      product.stored_type = stored_type;
      product.stored_zeros = call.at.zeros ? panel + call.at.zeros_offset() + first_group * kPanelRows : nullptr;
      product.ahead = ahead;
      product.scales_ahead = scales_ahead;
      product.span = shape.span;
      product.columns = columns;
      product.table = &call.table;
      product.folded = folded;
      product.x = tiles.x + (base * shape.columns + k0 * w) * shape.element_bytes();
      product.correction = tiles.correction + base * shape.units() + k0 / shape.unit() * w;
      product.x_scales = shape.x_scales ? tiles.scales + base * shape.spans() + k0 / shape.span * w : nullptr;
      product.w = w;
      product.sums = sums + (base - m_first) * rows;
      pieces.multiply(product);
    }
  }
  if (pieces.finish != nullptr) pieces.finish();
}

void store_item(const Call& call, const Item& item, const TileShape& shape, const Tiles& tiles, int64_t m0,
                const ThreadScratch& scratch) {
  const LayerWeights& weights = *call.args.weights;
  const PartWeights& part = weights.parts[item.part];
  const int64_t rows = call.pieces.rows();
  const int64_t r0 = item.panel * kPanelRows;
  const int64_t n = std::min(item.panels * kPanelRows, part.n - r0);
  const double factor = StoredWeights(weights, item.part).factor() * call.product;
  for (int64_t r = 0; r < n; ++r) scratch.bias[r] = bias_value(part, r0 + r);
  const int64_t column = output_column(weights, item.part, r0);
  const bool contiguous = n == 1 || output_column(weights, item.part, r0 + 1) == column + 1;
  const int64_t m_first = item.tile * shape.tile_rows;
  const int64_t m_end = std::min(m_first + item.tiles * shape.tile_rows, shape.rows);
  for (int64_t m = m_first; m < m_end; ++m) {
    const float* sums = scratch.sums + (m - m_first) * rows;
    const double both = tiles.factor[m] * factor;
    if (contiguous) {
      store_results(call.isa, call.args.y, m0 + m, column, sums, n, both, scratch.bias);
      continue;
    }
    for (int64_t r = 0; r < n; ++r) {
      store(call.args.y, m0 + m, output_column(weights, item.part, r0 + r), sums[r] * both + scratch.bias[r]);
    }
  }
}

const int32_t* order_of(const NibblesRows16& at, const uint8_t* packed) {
  return at.ordered ? reinterpret_cast<const int32_t*>(packed) : nullptr;
}

// Packed bytes of a part, its order first.
const uint8_t* packed_part(const NibblesRows16& at, const LayerWeights& weights, const uint8_t* packed, size_t part) {
  for (size_t p = 0; p < part; ++p) {
    packed += at.order_bytes() + NibblesRows16::panels(weights.parts[p].n) * at.panel_bytes();
  }
  return packed;
}

bool any_uneven(const NibblesRows16& at, const RunArgs& args) {
  for (size_t part = 0; at.ordered && part < args.weights->parts.size(); ++part) {
    if (order_of(at, packed_part(at, *args.weights, args.packed, part))[0] == kUnevenOrder) return true;
  }
  return false;
}

// What all tiles of part `part` are made of.
Activations activations_of(const Call& call, size_t part, float* scratch) {
  const RunArgs& args = call.args;
  const PartWeights& weights = args.weights->parts[part];
  Activations activations{&args, &weights, call.recipe.use, nullptr, 0, call.table.bias};
  activations.order = order_of(call.at, packed_part(call.at, *args.weights, args.packed, part));
  activations.tensor_scale =
      dynamic_tensor_scale(args.weights->spec->scheme, args.x, weights, call.recipe.use, scratch);
  return activations;
}

}  // namespace

int64_t recipe_workspace(const Recipe& recipe, const LayerSpec& layer, int64_t m, int threads) {
  if (m == 0) return 0;
  const NibblesRows16 at(layer);
  int64_t most = recipe.uneven != nullptr && at.ordered ? recipe.uneven->workspace_bytes(layer, m, threads) : 0;
  for (const bool bf16 : {false, true}) {
    const Pieces pieces = pieces_of(recipe.route, active_isa(), bf16, span_of(at), m);
    Scratch scratch;
    const TileShape shape = tile_shape(recipe, pieces, layer, at, chunk_rows(m));
    most =
        std::max(most, carve_scratch(pieces, shape, at.zeros, versions_of(recipe, layer), threads, nullptr, scratch));
  }
  return most;
}

void run_recipe(const Recipe& recipe, const RunArgs& args) {
  const int64_t m = args.x.rows;
  if (m == 0) return;
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const NibblesRows16 at(layer);
  if (any_uneven(at, args)) return recipe.uneven->run(args);
  const Isa isa = active_isa();
  const Pieces pieces =
      pieces_of(recipe.route, isa, exact_in_bf16(layer.scheme, recipe.use, args.x.dtype), span_of(at), m);
  const NibbleTable& table = table_of(layer.scheme.weight);
  const int64_t chunk = chunk_rows(m);
  const int64_t versions = versions_of(recipe, layer);
  const TileShape full = tile_shape(recipe, pieces, layer, at, chunk);
  Scratch scratch;
  carve_scratch(pieces, full, at.zeros, versions, args.threads, args.workspace.data(), scratch);
  const bool doubled = integers(recipe.route) && table.most == 24;
  const double stored = pieces.stored_scales && layer.scheme.weight.scale == DType::f8_e4m3 ? 256 : 1;
  const Call call{recipe, args, at, pieces, isa, table, (doubled ? 0.25 : 1.0) * stored};
  const auto version_of = [&](size_t part) { return at.ordered ? part : activation_version(weights, part, versions); };
#pragma omp parallel num_threads(team_size(args.threads))
  {
    const ThreadScratch own = scratch.of(omp_get_thread_num());
    for (int64_t m0 = 0; m0 < m; m0 += chunk) {
      TileShape shape = full;
      shape.rows = std::min(chunk, m - m0);
      for (int64_t version = 0; version < versions; ++version) {
        const auto part = static_cast<size_t>(version);
        if (version_of(part) != part) continue;
        const Activations activations = activations_of(call, part, own.rows);
        const int64_t step = segment_columns(activations, shape);
        const int64_t segments = (shape.columns + step - 1) / step;
        const Tiles tiles = scratch.version(version, chunk);
#pragma omp for schedule(static) nowait
        for (int64_t item = 0; item < shape.tiles() * segments; ++item) {
          pack_tile(activations, shape, m0, item / segments, item % segments, tiles, own.rows);
        }
      }
#pragma omp barrier
      for (size_t part = 0; part < weights.parts.size(); ++part) {
        const Tiles tiles = scratch.version(static_cast<int64_t>(version_of(part)), chunk);
        const uint8_t* packed = packed_part(at, weights, args.packed, part) + at.order_bytes();
        const int64_t panels = NibblesRows16::panels(weights.parts[part].n);
        const int64_t groups = (panels + pieces.panels - 1) / pieces.panels;
        const int64_t wanted = (kItemsPerThread * args.threads + groups - 1) / groups;
        const int64_t splits = args.threads == 1 ? 1 : std::min(wanted, shape.tiles());
        const int64_t tiles_each = (shape.tiles() + splits - 1) / splits;
        const int64_t run = std::max<int64_t>(1, groups * splits / (kRunsPerThread * args.threads));
#pragma omp for schedule(dynamic, run) nowait
        for (int64_t index = 0; index < groups * splits; ++index) {
          Item item{part, packed, index / splits * pieces.panels, 0, index % splits * tiles_each, 0};
          item.panels = std::min(pieces.panels, panels - item.panel);
          item.tiles = std::min(tiles_each, shape.tiles() - item.tile);
          if (item.tiles <= 0) continue;
          multiply_item(call, item, shape, tiles, own);
          store_item(call, item, shape, tiles, m0, own);
        }
      }
#pragma omp barrier
    }
  }
}

}  // namespace gearshift
