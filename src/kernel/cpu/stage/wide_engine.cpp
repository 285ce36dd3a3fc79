// Chunks of rows of x become tiles, then every thread takes panels and walks K in blocks.
#include "kernel/cpu/stage/wide_engine.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

#include "format/bf16.h"
#include "format/e4m3.h"
#include "format/e8m0.h"
#include "format/fp16.h"
#include "kernel/cpu/isa.h"
#include "kernel/cpu/stage/pieces.h"
#include "kernel/cpu/stage/results.h"
#include "kernel/cpu/stage/wide_x.h"
#include "kernel/cpu/team.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/activation.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

constexpr ActivationUse kUse = ActivationUse::as_checkpoint;
// Rows of x that share one pass over the weights.
constexpr int64_t kWideChunkRows = 256;
// Panels are divided by rows of x too where there are fewer items than this for each thread.
constexpr int64_t kWideItems = 4;
// Panel groups that are walked side by side: as often a block of x is used before it leaves the cache. Two where one
// tile of x leaves nothing to use again: two streams of codes are read a little faster than one.
constexpr int64_t kWideSide = 4, kFewSide = 2;
// Bytes of each of those streams in turn.
constexpr int64_t kStreamBytes = 2048;

int64_t wide_chunk(int64_t m) {
  const int64_t chunks = (m + kWideChunkRows - 1) / kWideChunkRows;
  return chunks == 0 ? 0 : (m + chunks - 1) / chunks;
}

// Scales along K that sums cannot wait for.
bool scaled_inside(const WideRows16& at) { return at.groups > 1; }

// Activation groups that end where weight groups end stay out of the values.
bool separate_x_scales(const Scheme& scheme, const WideRows16& at) {
  return scheme.activation && scheme.activation->granularity == Granularity::token_group && scaled_inside(at) &&
         scheme.activation->group == at.group;
}

// All arrays of one call. A version is what parts with the same stored scalars share.
struct WideScratch {
  uint8_t* rows;    // [versions][chunk][columns] values
  uint8_t* tiles;   // as many, in the order of tiles
  WideRow* row;     // [versions][chunk]
  float* x_scales;  // [versions][chunk][groups]
  float* tile_scales;
  uint8_t* thread;  // of thread 0
  int64_t thread_bytes, version_rows, version_scales;
};
struct WideThread {
  float* row;        // [2][columns]
  float* scales;     // [spans of a block][rows of a panel group]
  uint8_t* decoded;  // [panels of a group] blocks
  float* sums;       // [panel groups side by side][chunk][rows of a panel group]
  float* last;       // [rows of a panel group]: scales of whole rows
  double* bias;
};

struct WideCall {
  const RunArgs& args;
  const LayerSpec& layer;
  WideRows16 at;
  WidePieces pieces;
  Isa isa;
  bool x_scales;
  int64_t chunk, versions;

  int64_t rows() const { return kWideRows * pieces.panels; }
  // Columns that several tiles take in turn: no scale's span is cut.
  int64_t block() const { return std::max(pieces.block, scaled_inside(at) ? at.group : 0); }
  int64_t decoded_panel_bytes() const { return block() * kWideRows * pieces.decoded_bytes; }
  int64_t row_bytes() const { return (at.columns * wide_x_bytes(pieces.x) + 63) / 64 * 64; }
  int64_t tiles(int64_t rows_of_x) const { return (rows_of_x + pieces.tile_rows - 1) / pieces.tile_rows; }
  int64_t width(int64_t tile, int64_t rows_of_x) const {
    return std::min(pieces.tile_rows, rows_of_x - tile * pieces.tile_rows);
  }
};

WideThread carve_thread(const WideCall& call, Carver& carver) {
  WideThread thread{};
  thread.row = carver.take<float>(2 * call.at.columns);
  thread.scales = carver.take<float>(scaled_inside(call.at) ? kWideBlock / call.at.group * call.rows() : 0);
  thread.decoded = carver.take<uint8_t>(call.pieces.panels * call.decoded_panel_bytes());
  thread.sums = carver.take<float>(kWideSide * call.chunk * call.rows());
  thread.last = carver.take<float>(call.rows());
  thread.bias = carver.take<double>(call.rows());
  return thread;
}

int64_t carve_wide(const WideCall& call, int threads, uint8_t* base, WideScratch& s) {
  Carver carver(base);
  const int64_t rows = call.versions * call.chunk;
  s.version_rows = call.chunk;
  s.version_scales = call.x_scales ? call.chunk * call.at.groups : 0;
  s.rows = carver.take<uint8_t>(rows * call.row_bytes());
  s.tiles = carver.take<uint8_t>(rows * call.row_bytes());
  s.row = carver.take<WideRow>(rows);
  s.x_scales = carver.take<float>(call.versions * s.version_scales);
  s.tile_scales = carver.take<float>(call.versions * s.version_scales);
  const int64_t shared = carver.used();
  Carver counter(nullptr);
  carve_thread(call, counter);
  s.thread_bytes = counter.used();
  s.thread = base == nullptr ? nullptr : base + shared;
  return shared + threads * s.thread_bytes;
}

WideCall wide_call(const RunArgs& args, const LayerSpec& layer, DType dtype, int64_t m, bool tiles) {
  const WideRows16 at(layer);
  const bool x_scales = separate_x_scales(layer.scheme, at);
  const Isa isa = active_isa();
  const bool integers = at.code == WideCode::int8 && layer.scheme.activation.has_value();
  WidePieces pieces =
      wide_pieces(isa, at.code, integers, wide_exact_in_bf16(layer.scheme, kUse, dtype, x_scales), tiles, m);
  const int64_t chunk = wide_chunk(m);
  if (m == 1 && pieces.multiply_one != nullptr) {
    pieces.multiply = pieces.multiply_one;
    pieces.panels = pieces.one_panels;
    pieces.decode = nullptr;
  }
  // Tiles of x of nearly equal size: a last one of few rows would cost as much as a whole one.
  const int64_t count = std::max<int64_t>(1, (chunk + pieces.tile_rows - 1) / pieces.tile_rows);
  pieces.tile_rows = std::max<int64_t>(1, (chunk + count - 1) / count);
  return {args, layer, at, pieces, isa, x_scales, chunk, activation_versions(layer, kUse)};
}

float wide_scale(DType dtype, const uint8_t* at) {
  uint16_t half;
  float value;
  switch (dtype) {
    case DType::bf16:
      std::memcpy(&half, at, 2);
      return format::decode_bf16(half);
    case DType::f16:
      std::memcpy(&half, at, 2);
      return format::decode_fp16(half);
    case DType::f8_e4m3:
      return format::e4m3_table[*at];
    case DType::f8_e8m0:
      return format::e8m0_table[*at];
    default:
      std::memcpy(&value, at, 4);
      return value;
  }
}

// ---- x
// ----------------------------------------------------------------------------------------------------------------

void ready_rows(const WideCall& call, const WideScratch& s, const WideThread& own, int64_t m0, int64_t rows,
                size_t part) {
  const PartWeights& weights = call.args.weights->parts[part];
  const auto version = static_cast<int64_t>(part);
  const float tensor_scale = dynamic_tensor_scale(call.layer.scheme, call.args.x, weights, kUse, own.row);
  const WideRecipe recipe{&call.args, &weights, kUse, tensor_scale, call.pieces.x, call.at.columns, call.x_scales};
#pragma omp for schedule(static) nowait
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = version * s.version_rows + r;
    s.row[at] = ready_wide_row(recipe, call.isa, m0 + r, s.rows + at * call.row_bytes(),
                               s.x_scales + version * s.version_scales + r * call.at.groups, own.row);
  }
}

void tile_rows(const WideCall& call, const WideScratch& s, int64_t rows, int64_t version) {
  const int64_t segments = (call.at.columns + kWideBlock - 1) / kWideBlock;
#pragma omp for schedule(static) nowait
  for (int64_t item = 0; item < call.tiles(rows) * segments; ++item) {
    const int64_t tile = item / segments, k0 = item % segments * kWideBlock, first = tile * call.pieces.tile_rows;
    const int64_t w = call.width(tile, rows);
    const int64_t at = (version * s.version_rows + first) * call.row_bytes();
    wide_tile(call.pieces.x, s.rows + at, call.row_bytes(), w, k0, std::min(kWideBlock, call.at.columns - k0),
              s.tiles + at + k0 * w * wide_x_bytes(call.pieces.x));
    if (!call.x_scales || k0 != 0) continue;
    const int64_t scales = version * s.version_scales + first * call.at.groups;
    for (int64_t r = 0; r < w; ++r) {
      for (int64_t g = 0; g < call.at.groups; ++g)
        s.tile_scales[scales + g * w + r] = s.x_scales[scales + r * call.at.groups + g];
    }
  }
}

// ---- products
// -----------------------------------------------------------------------------------------------------------

// Panels [panel, panel + panels) of a part, at most kWideSide groups of them, against tiles [tile, tile + tiles).
struct WideItem {
  size_t part;
  int64_t version;
  const uint8_t* packed;  // of the part
  int64_t panel, panels, tile, tiles;
};
// The panels of its group `group`.
int64_t group_panels(const WideCall& call, const WideItem& item, int64_t group) {
  return std::min(call.pieces.panels, item.panels - group * call.pieces.panels);
}

// fp32 scales of `count` spans from `first` on of the panels at `panel`.
void panel_scales(const WideCall& call, const uint8_t* panel, int64_t panels, int64_t first, int64_t count,
                  float* out) {
  const WideRows16& at = call.at;
  const DType dtype = call.layer.scheme.weight.scale;
  // Columns past K may be spans of their own: no scale is stored for them, and their codes and x are zeros.
  const int64_t stored = std::min(count, at.groups - first);
  std::fill(out + stored * call.rows(), out + count * call.rows(), 0.0f);
  for (int64_t p = 0; p < panels; ++p, panel += at.panel_bytes(), out += kWideRows) {
    const uint8_t* from = panel + at.scales_offset() + first * at.scale_rows * at.scale_bytes;
    if (at.scale_rows == kWideRows) {
      decode_scales(call.isa, dtype, from, stored, out, call.rows());
      continue;
    }
    for (int64_t g = 0; g < stored; ++g) {
      const float scale = at.scale_rows == 0 ? 1 : wide_scale(dtype, from + g * at.scale_bytes);
      std::fill_n(out + g * call.rows(), kWideRows, scale);
    }
  }
}

// The tiles of an item against `columns` columns of one panel group from k0 on.
void multiply_block(const WideCall& call, const WideScratch& s, const WideItem& item, int64_t rows_of_x, int64_t group,
                    int64_t k0, int64_t columns, bool decodes, const WideThread& own) {
  const WideRows16& at = call.at;
  const int64_t panels = group_panels(call, item, group), m_first = item.tile * call.pieces.tile_rows;
  const int64_t chunk_sums = call.chunk * call.rows();
  const uint8_t* panel = item.packed + (item.panel + group * call.pieces.panels) * at.panel_bytes();
  WideArgs product{};
  product.columns = columns;
  product.span = at.group;
  product.weights = panel + k0 * kWideRows * at.code_bytes();
  product.stride = panels > 1 ? at.panel_bytes() : 0;
  product.panels = panels;
  if (scaled_inside(at)) {
    panel_scales(call, panel, panels, k0 / at.group, (columns + at.group - 1) / at.group, own.scales);
    product.scales = own.scales;
  }
  if (decodes) {
    for (int64_t p = 0; p < panels; ++p)
      call.pieces.decode(product.weights + p * at.panel_bytes(), columns, own.decoded + p * call.decoded_panel_bytes());
    product.weights = own.decoded;
    product.stride = panels > 1 ? call.decoded_panel_bytes() : 0;
  }
  for (int64_t tile = item.tile; tile < item.tile + item.tiles; ++tile) {
    const int64_t first = tile * call.pieces.tile_rows;
    product.w = call.width(tile, rows_of_x);
    product.x = s.tiles + (item.version * s.version_rows + first) * call.row_bytes() +
                k0 * product.w * wide_x_bytes(call.pieces.x);
    product.fetches = tile == item.tile;
    if (call.x_scales)
      product.x_scales =
          s.tile_scales + item.version * s.version_scales + first * at.groups + k0 / at.group * product.w;
    product.sums = own.sums + group * chunk_sums + (first - m_first) * call.rows();
    decodes ? call.pieces.multiply_decoded(product) : call.pieces.multiply(product);
  }
}

void multiply_wide(const WideCall& call, const WideScratch& s, const WideItem& item, int64_t rows_of_x,
                   const WideThread& own) {
  const WideRows16& at = call.at;
  const int64_t groups = (item.panels + call.pieces.panels - 1) / call.pieces.panels;
  const int64_t m_first = item.tile * call.pieces.tile_rows;
  const int64_t m_end = std::min(m_first + item.tiles * call.pieces.tile_rows, rows_of_x);
  for (int64_t group = 0; group < groups; ++group)
    std::fill_n(own.sums + group * call.chunk * call.rows(), (m_end - m_first) * call.rows(), 0.0f);
  const bool decodes = call.pieces.multiply == nullptr || (item.tiles > 1 && call.pieces.decode != nullptr);
  const int64_t stream = std::max(kStreamBytes / (kWideRows * at.code_bytes()), scaled_inside(at) ? at.group : 0);
  const int64_t block = decodes || item.tiles > 1 ? call.block() : rows_of_x > 1 ? stream : kWideBlock;
  for (int64_t k0 = 0; k0 < at.columns; k0 += block) {
    const int64_t columns = std::min(block, at.columns - k0);
    for (int64_t group = 0; group < groups; ++group)
      multiply_block(call, s, item, rows_of_x, group, k0, columns, decodes, own);
  }
  if (call.pieces.finish != nullptr) call.pieces.finish();
}

// Integer sums of row `row` of x in place, as fp32: the offset of unsigned codes off, the shift of x back on.
void finish_integers(const WideCall& call, const uint8_t* panel, int64_t panels, const WideRow& row, float* sums) {
  for (int64_t p = 0; p < panels; ++p, panel += call.at.panel_bytes())
    wide_integers(call.isa, row, panel + call.at.sums_offset(), sums + p * kWideRows);
}

// The results of panel group `group` of an item.
void store_group(const WideCall& call, const WideScratch& s, const WideItem& item, int64_t group, int64_t m0,
                 int64_t rows_of_x, const WideThread& own) {
  const LayerWeights& weights = *call.args.weights;
  const PartWeights& part = weights.parts[item.part];
  const int64_t panels = group_panels(call, item, group), first = item.panel + group * call.pieces.panels;
  const uint8_t* panel = item.packed + first * call.at.panel_bytes();
  const int64_t rows = call.rows(), r0 = first * kWideRows, m_first = item.tile * call.pieces.tile_rows;
  const int64_t m_end = std::min(m_first + item.tiles * call.pieces.tile_rows, rows_of_x);
  const int64_t n = std::min(panels * kWideRows, part.n - r0);
  if (!scaled_inside(call.at)) panel_scales(call, panel, panels, 0, 1, own.last);
  for (int64_t r = 0; r < n; ++r) own.bias[r] = bias_value(part, r0 + r);
  const int64_t column = output_column(weights, item.part, r0);
  const bool contiguous = n == 1 || output_column(weights, item.part, r0 + 1) == column + 1;
  const double global = StoredWeights(weights, item.part).factor() * call.pieces.unit;
  for (int64_t m = m_first; m < m_end; ++m) {
    float* sums = own.sums + (group * call.chunk + m - m_first) * rows;
    const WideRow& row = s.row[item.version * s.version_rows + m];
    if (call.pieces.integers) finish_integers(call, panel, panels, row, sums);
    if (!scaled_inside(call.at)) {
      for (int64_t r = 0; r < n; ++r) sums[r] *= own.last[r];
    }
    const double factor = row.factor * global;
    if (contiguous) {
      store_results(call.isa, call.args.y, m0 + m, column, sums, n, factor, own.bias);
      continue;
    }
    for (int64_t r = 0; r < n; ++r)
      store(call.args.y, m0 + m, output_column(weights, item.part, r0 + r), sums[r] * factor + own.bias[r]);
  }
}

void multiply_part(const WideCall& call, const WideScratch& s, const uint8_t* packed, size_t part, int64_t m0,
                   int64_t rows, const WideThread& own) {
  const int64_t panels = WideRows16::panels(call.args.weights->parts[part].n);
  const int64_t groups = (panels + call.pieces.panels - 1) / call.pieces.panels;
  const int64_t tiles = call.tiles(rows), wanted = call.args.threads == 1 ? 1 : kWideItems * call.args.threads;
  const int64_t side = std::clamp<int64_t>(groups / wanted, 1, tiles > 1 ? kWideSide : rows > 1 ? kFewSide : 1);
  const int64_t columns_of_items = (groups + side - 1) / side;
  const int64_t splits = std::min((wanted + columns_of_items - 1) / columns_of_items, tiles);
  const int64_t each = (tiles + splits - 1) / splits;
  const auto version = static_cast<int64_t>(activation_version(*call.args.weights, part, call.versions));
#pragma omp for schedule(dynamic) nowait
  for (int64_t index = 0; index < columns_of_items * splits; ++index) {
    WideItem item{part, version, packed, index / splits * side * call.pieces.panels, 0, index % splits * each, 0};
    item.panels = std::min(side * call.pieces.panels, panels - item.panel);
    item.tiles = std::min(each, tiles - item.tile);
    if (item.tiles <= 0) continue;
    multiply_wide(call, s, item, rows, own);
    const int64_t taken = (item.panels + call.pieces.panels - 1) / call.pieces.panels;
    for (int64_t group = 0; group < taken; ++group) store_group(call, s, item, group, m0, rows, own);
  }
}

template <bool Tiles>
void run_wide(const RunArgs& args) {
  const int64_t m = args.x.rows;
  if (m == 0) return;
  const LayerWeights& weights = *args.weights;
  const WideCall call = wide_call(args, *weights.spec, args.x.dtype, m, Tiles);
  WideScratch s;
  carve_wide(call, args.threads, args.workspace.data(), s);
#pragma omp parallel num_threads(team_size(args.threads))
  {
    Carver carver(s.thread + omp_get_thread_num() * s.thread_bytes);
    const WideThread own = carve_thread(call, carver);
    for (int64_t m0 = 0; m0 < m; m0 += call.chunk) {
      const int64_t rows = std::min(call.chunk, m - m0);
      for (size_t part = 0; part < static_cast<size_t>(call.versions); ++part) {
        if (activation_version(weights, part, call.versions) == part) ready_rows(call, s, own, m0, rows, part);
      }
#pragma omp barrier
      for (size_t part = 0; part < static_cast<size_t>(call.versions); ++part) {
        if (activation_version(weights, part, call.versions) == part)
          tile_rows(call, s, rows, static_cast<int64_t>(part));
      }
#pragma omp barrier
      const uint8_t* packed = args.packed;
      for (size_t part = 0; part < weights.parts.size(); ++part) {
        multiply_part(call, s, packed, part, m0, rows, own);
        packed += WideRows16::panels(weights.parts[part].n) * call.at.panel_bytes();
      }
#pragma omp barrier
    }
  }
}

// What any type of x may need: it decides whether values are bf16 or fp32.
template <bool Tiles>
int64_t wide_workspace(const LayerSpec& layer, int64_t m, int threads) {
  if (m == 0) return 0;
  int64_t most = 0;
  const RunArgs none{};
  for (const DType dtype : {DType::bf16, DType::f32}) {
    WideScratch s;
    most = std::max(most, carve_wide(wide_call(none, layer, dtype, m, Tiles), threads, nullptr, s));
  }
  return most;
}

}  // namespace

Kernel make_wide(std::string_view name, bool tiles) {
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "native";
  kernel.activation = kUse;
  kernel.layout = &wide_rows16;
  Contract& contract = kernel.contract;
  contract.storages = {Storage::dense};
  contract.dtypes = {DType::f32, DType::f16, DType::bf16};
  contract.zero_points = contract.act_order = false;
  contract.bits_same_for_any_m = true;
  contract.verified = verified_processors();
  kernel.workspace_bytes = tiles ? wide_workspace<true> : wide_workspace<false>;
  kernel.run = tiles ? run_wide<true> : run_wide<false>;
  return kernel;
}

}  // namespace gearshift
