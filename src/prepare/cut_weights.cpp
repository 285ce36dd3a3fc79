#include "prepare/cut_weights.h"

#include <algorithm>

#include "base/math.h"
#include "base/text.h"
#include "kernel/parts.h"
#include "layer/shard.h"
#include "layer/stored_bits.h"

namespace gearshift {
namespace {

// `count` bits, low ones of a byte first, into bits that are zero.
void copy_bits(ByteView from, int64_t from_bit, std::vector<uint8_t>& to, int64_t to_bit, int64_t count) {
  if (from_bit % 8 == 0 && to_bit % 8 == 0) {
    const auto* source = from.data() + from_bit / 8;
    std::copy(source, source + count / 8, to.data() + to_bit / 8);
    const int64_t whole = count / 8 * 8;
    from_bit += whole;
    to_bit += whole;
    count -= whole;
  }
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bit = (from[static_cast<size_t>((from_bit + i) / 8)] >> ((from_bit + i) % 8)) & 1U;
    uint8_t& byte = to[static_cast<size_t>((to_bit + i) / 8)];
    byte = static_cast<uint8_t>(byte | bit << ((to_bit + i) % 8));
  }
}

// Consecutive indices of the whole layer that belong to a rank, `lead` paddings in front of them.
struct Share {
  int64_t first = 0, count = 0, lead = 0;

  int64_t source_of(int64_t i) const {
    const int64_t own = i - lead;
    return own >= 0 && own < count ? first + own : kPadding;
  }
};

Share share_of(const LayerSpec& target, int64_t all, int64_t each, int64_t rank) {
  const int64_t first = std::min(rank * each, all);
  return {first, std::min(each, all - first), lead_of(target, each, rank)};
}

// How far the first own index lies inside its scale tile, seen from the table that the rank gets.
int64_t window(const std::vector<int64_t>& sources, int64_t tile) {
  const auto first = std::find_if(sources.begin(), sources.end(), [](int64_t source) { return source != kPadding; });
  if (first == sources.end() || tile <= 1) return 0;
  const int64_t inside = (*first - (first - sources.begin())) % tile;
  return inside < 0 ? inside + tile : inside;
}

// Source tile of each tile along one dimension; kPadding where it holds padding alone. nullopt: two source tiles in
// one.
std::optional<std::vector<int64_t>> tile_sources(const std::vector<int64_t>& sources, int64_t tile, int64_t inside) {
  const auto extent = static_cast<int64_t>(sources.size());
  std::vector<int64_t> tiles(static_cast<size_t>(ceil_div(inside + extent, tile)), kPadding);
  for (int64_t i = 0; i < extent; ++i) {
    if (sources[static_cast<size_t>(i)] == kPadding) continue;
    int64_t& entry = tiles[static_cast<size_t>((inside + i) / tile)];
    const int64_t source = sources[static_cast<size_t>(i)] / tile;
    if (entry != kPadding && entry != source) return std::nullopt;
    entry = source;
  }
  return tiles;
}

std::vector<int64_t> counted(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(i)] = i;
  return all;
}

ErrorInfo cut_halves(const LayerSpec& layer) {
  return {ErrorCode::runtime,
          "layer " + printable(layer.name),
          "two halves in one matrix, whose scale blocks the split cuts",
          "halves that divide into whole blocks",
          "use a smaller tensor-parallel degree",
          {}};
}

class Cutter {
 public:
  Cutter(const LayerWeights& whole, int64_t rank, CutWeights& out) : whole_(whole), rank_(rank), out_(out) {}

  Result<void> cut(size_t index) {
    const LayerSpec& target = out_.spec;
    const PartWeights& from = whole_.parts[index];
    rows_ = rank_rows(target, index, rank_);
    columns_ = rank_columns(target, rank_);
    PartWeights part = from;
    part.n = part_rows(target, index);
    const Scheme& scheme = target.scheme;
    source_ = stored_extents(scheme, from.n, whole_.spec->k);
    extents_ = stored_extents(scheme, part.n, target.k);
    cut_codes(from, part);
    if (scheme.quantized) {
      if (!cut_tiles(part)) return cut_halves(target);
      if (!from.scale.empty()) cut_scales(from, part);
      if (!from.zero_point.empty()) cut_zeros(from, part);
    }
    if (!from.group_index.empty()) part.group_index = elements(from.group_index, columns_, 32);
    if (!from.pre_scale.empty()) part.pre_scale = elements(from.pre_scale, columns_, bits(from.pre_scale_dtype));
    if (!from.bias.empty()) {
      const bool others = target.shard->split == Split::row && rank_ > 0;
      part.bias = others ? ByteView{} : elements(from.bias, rows_, bits(from.bias_dtype));
    }
    out_.weights.parts.push_back(part);
    return {};
  }

 private:
  std::vector<uint8_t>& keep(int64_t bytes) {
    // Readers take codes by the word: a stream may end with a part of one.
    return out_.bytes.emplace_back(static_cast<size_t>(ceil_div(bytes, 4) * 4));
  }

  // Elements of a one-dimensional tensor; zeros for padding.
  ByteView elements(ByteView from, const std::vector<int64_t>& sources, int width) {
    const auto size = static_cast<size_t>(width / 8);
    std::vector<uint8_t>& bytes = keep(static_cast<int64_t>(sources.size() * size));
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i] == kPadding) continue;
      const auto* source = from.data() + static_cast<size_t>(sources[i]) * size;
      std::copy(source, source + size, bytes.data() + i * size);
    }
    return ByteView(bytes).first(sources.size() * size);
  }

  void cut_codes(const PartWeights& from, PartWeights& part) {
    const Storage storage = out_.spec.scheme.weight.storage;
    const int width = code_width(out_.spec.scheme, from.weight_dtype);
    std::vector<uint8_t>& bytes = keep(code_bytes(storage, width, extents_));
    for (size_t r = 0; r < rows_.size(); ++r) {
      if (rows_[r] != kPadding) copy_row(from.weight, width, rows_[r], static_cast<int64_t>(r), bytes);
    }
    part.weight = ByteView(bytes).first(static_cast<size_t>(code_bytes(storage, width, extents_)));
  }

  // The codes of one row. A rank's columns are consecutive, so are their addresses where storage runs along K.
  void copy_row(ByteView from, int width, int64_t row, int64_t own_row, std::vector<uint8_t>& bytes) const {
    const Storage storage = out_.spec.scheme.weight.storage;
    const auto own = [](int64_t source) { return source != kPadding; };
    const int64_t first = std::find_if(columns_.begin(), columns_.end(), own) - columns_.begin();
    const int64_t count = std::count_if(columns_.begin(), columns_.end(), own);
    if (count == 0) return;
    const auto source_bit = [&](int64_t i, int t) {
      return code_bit(storage, width, source_, row, columns_[static_cast<size_t>(first)] + i, t);
    };
    const auto own_bit = [&](int64_t i, int t) { return code_bit(storage, width, extents_, own_row, first + i, t); };
    const auto runs_on = [&](const auto& bit) { return bit(count - 1, width - 1) - bit(0, 0) == count * width - 1; };
    if (runs_on(source_bit) && runs_on(own_bit)) {
      copy_bits(from, source_bit(0, 0), bytes, own_bit(0, 0), count * width);
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      for (int t = 0; t < width; ++t) copy_bits(from, source_bit(i, t), bytes, own_bit(i, t), 1);
  }

  // Which scale tiles the rank gets, and where its rows and columns begin in them.
  bool cut_tiles(PartWeights& part) {
    const WeightScheme& weight = out_.spec.scheme.weight;
    const Grouping& grouping = weight.grouping;
    tile_rows_ = grouping.kind == Grouping::Kind::tensor ? counted(1) : rows_;
    tile_cols_ = counted(source_.tile_cols);
    if (grouping.kind == Grouping::Kind::block) {
      part.tile_row = window(rows_, grouping.rows);
      const auto tiles = tile_sources(rows_, grouping.rows, part.tile_row);
      if (!tiles) return false;
      tile_rows_ = *tiles;
    }
    const bool tiled = grouping.kind == Grouping::Kind::block || grouping.kind == Grouping::Kind::group;
    if (tiled && !weight.act_order) {
      part.tile_col = window(columns_, grouping.cols);
      const auto tiles = tile_sources(columns_, grouping.cols, part.tile_col);
      if (!tiles) return false;
      tile_cols_ = *tiles;
    }
    extents_.tile_rows = static_cast<int64_t>(tile_rows_.size());
    extents_.tile_cols = static_cast<int64_t>(tile_cols_.size());
    if (tiled) part.tile_cols = extents_.tile_cols;
    // A rank inside one tile sees a tile that begins with it, as kernels without an offset do.
    if (!out_.spec.shard->offset && extents_.tile_rows == 1) part.tile_row = 0;
    if (!out_.spec.shard->offset && extents_.tile_cols == 1) part.tile_col = 0;
    return true;
  }

  void cut_scales(const PartWeights& from, PartWeights& part) {
    const WeightScheme& weight = out_.spec.scheme.weight;
    part.scale = table(from.scale, bits(from.scale_dtype), weight);
  }

  void cut_zeros(const PartWeights& from, PartWeights& part) {
    const WeightScheme& weight = out_.spec.scheme.weight;
    if (!zeros_are_packed(weight, from.zero_point_dtype)) {
      part.zero_point = table(from.zero_point, bits(from.zero_point_dtype), weight);
      return;
    }
    const int width = bits(weight.format);
    std::vector<uint8_t>& bytes = keep(zero_point_bytes(weight, extents_, from.zero_point_dtype));
    for (size_t r = 0; r < tile_rows_.size(); ++r) {
      for (size_t c = 0; c < tile_cols_.size(); ++c) {
        if (tile_rows_[r] == kPadding || tile_cols_[c] == kPadding) continue;
        for (int t = 0; t < width; ++t)
          copy_bits(from.zero_point, zero_bit(weight, width, source_, tile_rows_[r], tile_cols_[c], t), bytes,
                    zero_bit(weight, width, extents_, static_cast<int64_t>(r), static_cast<int64_t>(c), t), 1);
      }
    }
    part.zero_point = bytes;
  }

  // One element a tile.
  ByteView table(ByteView from, int width, const WeightScheme& weight) {
    const auto size = static_cast<size_t>(width / 8);
    const auto count = static_cast<size_t>(tile_count(extents_));
    std::vector<uint8_t>& bytes = keep(static_cast<int64_t>(count * size));
    for (size_t r = 0; r < tile_rows_.size(); ++r) {
      for (size_t c = 0; c < tile_cols_.size(); ++c) {
        if (tile_rows_[r] == kPadding || tile_cols_[c] == kPadding) continue;
        const auto source = static_cast<size_t>(tile_index(weight, source_, tile_rows_[r], tile_cols_[c]));
        const auto target =
            static_cast<size_t>(tile_index(weight, extents_, static_cast<int64_t>(r), static_cast<int64_t>(c)));
        std::copy_n(from.data() + source * size, size, bytes.data() + target * size);
      }
    }
    return ByteView(bytes).first(count * size);
  }

  const LayerWeights& whole_;
  int64_t rank_;
  CutWeights& out_;
  std::vector<int64_t> rows_, columns_, tile_rows_, tile_cols_;
  StoredExtents source_, extents_;
};

}  // namespace

std::vector<int64_t> rank_columns(const LayerSpec& target, int64_t rank) {
  const Shard& shard = *target.shard;
  const int64_t all = shard.whole->k;
  const bool divided = shard.split == Split::row;
  const Share share = divided ? share_of(target, all, ceil_div(all, shard.tp), rank) : Share{0, all, 0};
  std::vector<int64_t> sources(static_cast<size_t>(target.k), kPadding);
  for (int64_t i = 0; i < target.k; ++i) sources[static_cast<size_t>(i)] = share.source_of(i);
  return sources;
}

std::vector<int64_t> rank_rows(const LayerSpec& target, size_t part, int64_t rank) {
  const Shard& shard = *target.shard;
  const int64_t rows = part_rows(target, part), halves = stored_halves(*shard.whole);
  const int64_t all = part_rows(*shard.whole, part) / halves;
  const bool divided = shard.split == Split::column;
  const Share share = divided ? share_of(target, all, rank_share(*shard.whole, all, shard.tp), rank) : Share{0, all, 0};
  std::vector<int64_t> sources(static_cast<size_t>(rows), kPadding);
  // Two halves of one stored matrix divide each on their own.
  for (int64_t half = 0; half < halves; ++half) {
    const int64_t begin = half * (rows / halves), end = half + 1 < halves ? begin + rows / halves : rows;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t source = share.source_of(i - begin);
      if (source != kPadding) sources[static_cast<size_t>(i)] = half * all + source;
    }
  }
  return sources;
}

Result<std::unique_ptr<CutWeights>> cut_weights(const LayerWeights& whole, const LayerSpec& target, int64_t rank) {
  auto out = std::make_unique<CutWeights>();
  out->spec = target;
  out->weights.spec = &out->spec;
  out->bytes.reserve(whole.parts.size() * 6);
  Cutter cutter(whole, rank, *out);
  for (size_t part = 0; part < whole.parts.size(); ++part) {
    if (const Result<void> done = cutter.cut(part); !done.ok()) return done.error();
  }
  return out;
}

}  // namespace gearshift
