// A layer divided among tensor-parallel ranks.
#include "layer/shard.h"

#include <algorithm>
#include <array>

#include "base/math.h"
#include "layer/modules.h"
#include "layer/stored_bits.h"

namespace gearshift {
namespace {

// q_b, kv_b: the second half of a low-rank query or key/value projection.
constexpr std::array kColumnNames = {"q_proj", "k_proj", "v_proj",       "qkv_proj",  "qkv",       "query",
                                     "key",    "value",  "wq",           "wk",        "wv",        "wqkv",
                                     "Wqkv",   "wq_b",   "q_b_proj",     "kv_b_proj", "gate_proj", "up_proj",
                                     "w1",     "w3",     "gate_up_proj", "w13"};
constexpr std::array kHeadNames = {"lm_head", "head", "output", "embed_out"};
constexpr std::array kRowNames = {"o_proj", "out_proj", "wo", "down_proj", "w2"};

bool is_one_of(std::string_view name, std::span<const char* const> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* known) { return name == known; });
}

Split split_of(std::string_view layer_name) {
  const std::string_view last = last_component(layer_name);
  if (is_one_of(last, kRowNames)) return Split::row;
  if (is_one_of(last, kColumnNames) || is_one_of(last, kHeadNames) || last.starts_with("in_proj")) return Split::column;
  return Split::none;
}

// Gate and up stored as one matrix, one behind the other: a rank gets its rows of each half.
bool is_stored_pair(const LayerSpec& layer) {
  const std::string_view last = last_component(layer.name);
  return layer.modules.size() == 1 && layer.row_order == RowOrder::concatenated && layer.n % 2 == 0 &&
         (last == "gate_up_proj" || last == "w13");
}

// Interleaved rows stay in pairs.
int64_t row_step(const LayerSpec& layer) { return layer.row_order == RowOrder::interleaved ? 2 : 1; }

struct Division {
  int64_t each = 0;
  bool uneven = false, offset = false;
};

// `tile`: extent of a scale tile along this dimension, 0 where scales do not change along it.
Division divide(int64_t extent, int64_t tp, int64_t tile) {
  Division division{ceil_div(extent, tp), extent % tp != 0, false};
  // A rank inside one tile, or one that begins with a tile, sees tiles that begin with it.
  division.offset = tile > 1 && tp > 1 && division.each > 0 && division.each % tile != 0 && tile % division.each != 0;
  return division;
}

int64_t tile_rows(const Scheme& scheme) {
  return scheme.quantized && scheme.weight.grouping.kind == Grouping::Kind::block ? scheme.weight.grouping.rows : 0;
}

// Columns that share a scale; 0 where an index tensor says which columns do.
int64_t tile_cols(const Scheme& scheme) {
  const Grouping& grouping = scheme.weight.grouping;
  const bool tiled = grouping.kind == Grouping::Kind::block || grouping.kind == Grouping::Kind::group;
  return scheme.quantized && tiled && !scheme.weight.act_order ? grouping.cols : 0;
}

DType weight_dtype_of(const Module& module) {
  for (const StoredTensor& tensor : module.tensors)
    if (tensor.role == TensorRole::weight) return tensor.dtype;
  return DType::bf16;
}

// Codes and scales that a rank holds of one module (of each of its experts, where it is a stack). `dtype`: of its
// codes.
uint64_t module_bytes(const LayerSpec& layer, const Module& module, DType dtype) {
  StoredExtents extents = stored_extents(layer.scheme, module.n, layer.k);
  const LayerSpec& whole = *layer.shard->whole;
  if (layer.scheme.weight.act_order) extents.tile_cols = stored_extents(layer.scheme, module.n, whole.k).tile_cols;
  const int width = code_width(layer.scheme, dtype);
  int64_t bytes = code_bytes(layer.scheme.weight.storage, width, extents);
  if (layer.scheme.quantized && layer.scheme.weight.grouping.kind != Grouping::Kind::tensor)
    bytes += tile_count(extents) * bits(layer.scheme.weight.scale) / 8;
  return static_cast<uint64_t>(bytes) * static_cast<uint64_t>(layer.stacked ? std::max<int64_t>(layer.experts, 1) : 1);
}

uint64_t bytes_of(const LayerSpec& layer) {
  uint64_t bytes = 0;
  // Parts that are joined store their codes in one dtype.
  const DType dtype = layer.modules.empty() ? DType::bf16 : weight_dtype_of(layer.modules.front());
  for (const Module& module : layer.modules) bytes += module_bytes(layer, module, dtype);
  return bytes;
}

uint64_t stacks(const LayerSpec& layer) {
  return layer.stacked ? static_cast<uint64_t>(std::max<int64_t>(layer.experts, 1)) : 1;
}

// Experts that have modules of their own.
int64_t separate_experts(const LayerSpec& layer) {
  return layer.kind == LayerKind::experts && !layer.stacked ? std::max<int64_t>(layer.experts, 1) : 1;
}

int64_t round_up(int64_t value, int64_t multiple) { return ceil_div(value, multiple) * multiple; }

// Extent that holds the share of any rank when it begins and ends with a tile.
int64_t whole_tiles_of(int64_t each, int64_t tp, int64_t tile) {
  if (tile <= 1) return each;
  int64_t most = 0;
  // Offsets repeat after at most `tile` ranks.
  for (int64_t rank = 0; rank < std::min(tp, tile); ++rank)
    most = std::max(most, round_up(rank * each % tile + each, tile));
  return most;
}

}  // namespace

bool is_output_head(const LayerSpec& layer) { return is_one_of(last_component(layer.name), kHeadNames); }

int64_t stored_halves(const LayerSpec& layer) { return is_stored_pair(layer) ? 2 : 1; }

int64_t rank_share(const LayerSpec& layer, int64_t extent, int64_t tp) {
  const int64_t step = row_step(layer);
  return ceil_div(extent / step, tp) * step;
}

int64_t lead_of(const LayerSpec& target, int64_t each, int64_t rank) {
  const int64_t tile = scale_tile(target);
  return target.shard->aligned && tile > 1 ? rank * each % tile : 0;
}

int64_t scale_tile(const LayerSpec& shard) {
  if (!shard.shard) return 0;
  switch (shard.shard->split) {
    case Split::column:
      return tile_rows(shard.scheme);
    case Split::row:
      return tile_cols(shard.scheme);
    case Split::none:
      return 0;
  }
  return 0;
}

int64_t divided_extent(const LayerSpec& shard) {
  if (shard.shard && shard.shard->split == Split::row) return shard.k;
  const int64_t tile = std::max<int64_t>(scale_tile(shard), 1), halves = stored_halves(shard);
  for (const Module& module : shard.modules)
    if (module.n / halves % tile != 0) return module.n / halves;
  return shard.modules.empty() ? shard.n : shard.modules.front().n / halves;
}

uint64_t duplicated_scale_bytes(const LayerSpec& shard) {
  if (!shard.shard || shard.shard->split == Split::none || !shard.scheme.quantized) return 0;
  const LayerSpec& whole = *shard.shard->whole;
  const Grouping::Kind kind = shard.scheme.weight.grouping.kind;
  if (kind != Grouping::Kind::group && kind != Grouping::Kind::block) return 0;
  int64_t own = 0, all = 0;
  for (size_t i = 0; i < shard.modules.size(); ++i) {
    StoredExtents extents = stored_extents(shard.scheme, shard.modules[i].n, shard.k);
    const StoredExtents before = stored_extents(shard.scheme, whole.modules[i].n, whole.k);
    if (shard.scheme.weight.act_order) extents.tile_cols = before.tile_cols;
    own += tile_count(extents);
    all += tile_count(before);
  }
  const int64_t more = std::max<int64_t>(0, own - all / shard.shard->tp);
  return static_cast<uint64_t>(more * bits(shard.scheme.weight.scale) / 8) * stacks(shard);
}

int64_t uneven_extent(const LayerSpec& shard) {
  if (!shard.shard || !shard.shard->uneven) return 0;
  const LayerSpec& whole = *shard.shard->whole;
  if (shard.shard->split == Split::row) return whole.k;
  const int64_t step = row_step(whole) * stored_halves(whole);
  for (const Module& module : whole.modules)
    if (module.n / step % shard.shard->tp != 0) return module.n / step;
  return 0;
}

uint64_t uneven_bytes(const LayerSpec& shard) {
  if (!shard.shard || !shard.shard->uneven) return 0;
  const LayerSpec& whole = *shard.shard->whole;
  const bool row = shard.shard->split == Split::row;
  const int64_t each = row ? shard.k : shard.n, extent = row ? whole.k : whole.n;
  const int64_t missing = std::max<int64_t>(0, each * shard.shard->tp - extent);
  return shard.weight_bytes / static_cast<uint64_t>(std::max<int64_t>(each, 1)) * static_cast<uint64_t>(missing);
}

LayerSpec padded(const LayerSpec& shard, const Padding& padding) {
  LayerSpec out = shard;
  const int64_t tp = shard.shard ? shard.shard->tp : 1;
  const auto parts = static_cast<int64_t>(shard.modules.size()) / separate_experts(shard);
  const bool tiles = padding.whole_tiles && shard.scheme.quantized;
  const bool column = shard.shard && shard.shard->split == Split::column;
  if (tiles) {
    out.n = 0;
    for (Module& module : out.modules) module.n = whole_tiles_of(module.n, column ? tp : 1, tile_rows(shard.scheme));
    for (int64_t i = 0; i < parts; ++i) out.n += out.modules[static_cast<size_t>(i)].n;
    out.k = whole_tiles_of(shard.k, column ? 1 : tp, tile_cols(shard.scheme));
  }
  const int64_t n = round_up(std::max(out.n, padding.n_min), padding.n_multiple);
  for (size_t i = 0; i < out.modules.size(); ++i)
    if (static_cast<int64_t>(i) % parts == parts - 1) out.modules[i].n += n - out.n;
  out.n = n;
  out.k = round_up(std::max(out.k, padding.k_min), padding.k_multiple);
  if (out.shard && tiles) {
    out.shard->offset = false;
    out.shard->aligned = true;
  }
  out.weight_bytes = bytes_of(out);
  return out;
}

std::string_view name(Split split) {
  switch (split) {
    case Split::none:
      return "none";
    case Split::column:
      return "column";
    case Split::row:
      return "row";
  }
  return "";
}

LayerSpec shard(const LayerSpec& layer, int64_t tp) {
  LayerSpec out = layer;
  out.shard = Shard{tp, split_of(layer.name), false, false, false, std::make_shared<const LayerSpec>(layer)};
  Shard& shard = *out.shard;
  if (shard.split == Split::none || tp == 1) return out;
  if (shard.split == Split::column) {
    const int64_t halves = stored_halves(layer);
    out.n = 0;
    for (Module& module : out.modules) {
      const int64_t step = row_step(layer);
      const Division division = divide(module.n / halves / step, tp, tile_rows(layer.scheme));
      module.n = division.each * halves * step;
      out.n += module.n;
      shard.uneven = shard.uneven || division.uneven;
      shard.offset = shard.offset || division.offset;
    }
    out.n /= separate_experts(layer);
  } else {
    const Division division = divide(layer.k, tp, tile_cols(layer.scheme));
    out.k = division.each;
    shard.uneven = division.uneven;
    shard.offset = division.offset;
  }
  out.weight_bytes = bytes_of(out);
  return out;
}

}  // namespace gearshift
