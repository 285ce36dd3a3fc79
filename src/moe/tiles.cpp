#include "moe/tiles.h"

#include <algorithm>

#include "kernel/layout/row_offset.h"

namespace gearshift {

namespace {

// Items that a thread gets on average, so that the last one to finish is not late by much.
constexpr int64_t kTilesPerThread = 4;
// Rows of a tile at least: x is made ready for each tile anew, which fewer rows would not pay for.
constexpr int64_t kLeastRows = 256;

int64_t chunks_of(const ExpertBlock::Projection& projection, int64_t rows) {
  return projection.splits_tokens ? (rows + kTileTokens - 1) / kTileTokens : 1;
}

}  // namespace

int64_t most_tiles(const ExpertBlock::Projection& projection, int64_t experts, int64_t entries, int threads) {
  const int64_t whole = std::min(experts, entries) + entries / kTileTokens + 1;
  return kTilesPerThread * threads + whole * (2 + static_cast<int64_t>(projection.parts.size()));
}

int64_t make_tiles(const ExpertBlock::Projection& projection, const SortedTokens& sorted, int threads,
                   std::span<ExpertTile> tiles) {
  const LayerPlan& plan = *projection.layer->plan;
  const auto experts = static_cast<int64_t>(sorted.first.size()) - 1;
  int64_t whole = 0;
  for (int64_t e = 0; e < experts; ++e) {
    if (sorted.rows_of(e) > 0) whole += chunks_of(projection, sorted.rows_of(e));
  }
  if (whole == 0) return 0;
  const int64_t wanted = (kTilesPerThread * threads + whole - 1) / whole;
  const int64_t cuts = std::clamp<int64_t>(plan.layer.n / kLeastRows, 1, wanted);
  const int64_t step = (plan.layer.n / cuts + kRowsTogether - 1) / kRowsTogether * kRowsTogether;
  const bool divide = threads > 1 && projection.divisible && cuts > 1;
  int64_t count = 0;
  for (int64_t e = 0; e < experts; ++e) {
    const int64_t rows = sorted.rows_of(e);
    if (rows == 0) continue;
    const PlannedRange& range = range_for(*plan.decision, rows);
    const int64_t chunks = chunks_of(projection, rows), each = (rows + chunks - 1) / chunks;
    for (int64_t at = 0; at < rows; at += each) {
      ExpertTile tile{&range, e, sorted.first[static_cast<size_t>(e)] + at, std::min(each, rows - at), -1, 0, 0};
      if (!divide) {
        tiles[static_cast<size_t>(count++)] = tile;
        continue;
      }
      for (size_t part = 0; part < projection.parts.size(); ++part) {
        const int64_t n = projection.parts[part].n;
        tile.part = static_cast<int64_t>(part);
        for (tile.from = 0; tile.from < n; tile.from += step) {
          tile.count = std::min(step, n - tile.from);
          tiles[static_cast<size_t>(count++)] = tile;
        }
      }
    }
  }
  return count;
}

}  // namespace gearshift
