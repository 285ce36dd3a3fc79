// Which items a grouped call has: made once a call, divided among threads, in an order that decides nothing.
#pragma once

#include "gearshift/moe.h"

namespace gearshift {

// Tokens of one tile at most: as many as dense kernels keep a block of weights for.
inline constexpr int64_t kTileTokens = 256;

// The most tiles that a call of this size has.
int64_t most_tiles(const ExpertBlock::Projection& projection, int64_t experts, int64_t entries, int threads);

// Writes the tiles of one projection to `tiles`, large ones of an expert next to each other; returns their number.
// Where there are fewer than threads can share, rows are divided as well.
int64_t make_tiles(const ExpertBlock::Projection& projection, const SortedTokens& sorted, int threads,
                   std::span<ExpertTile> tiles);

}  // namespace gearshift
