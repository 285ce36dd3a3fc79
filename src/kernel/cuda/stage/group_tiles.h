// What a grouped launch does: tokens sorted by expert, in tiles of those that share one. Made on the device
// (stage/sort_tokens.cu), so that nothing waits for the host.
#pragma once

#include <cstdint>

namespace gearshift::cuda {

// Rows [row, row + rows) of the sorted tokens, all of one expert; expert -1: none.
struct alignas(16) GroupTile {
  int32_t expert = -1, row = 0, rows = 0, spare = 0;
};

// What of a launch depends on the tile.
struct GroupedTiles {
  const GroupTile* tiles = nullptr;
  // Without a list: every entry of a router's choice is a tile of its own, its row of x that of its token (which
  // x_rows would say), its own sorted row. For few entries that costs less than sorting them.
  const int32_t* experts = nullptr;
  int expert_count = 0, x_divisor = 1;
  int count = 0;                    // as many as there can be; 0: one matrix and all rows of x
  int64_t expert_bytes = 0;         // from one expert's packed weights to the next one's
  const int32_t* x_rows = nullptr;  // [sorted row]: which row of x it is; nullptr: the same
  // The tiles were complete before the launch before this one let any start: they may be read before that one ends.
  bool ready = false;
};

// The most tiles of `tokens` rows that `entries` rows of `experts` experts can make.
inline int64_t most_group_tiles(int64_t experts, int64_t entries, int64_t tokens) {
  const int64_t busy = experts < entries ? experts : entries;
  return busy + (entries - busy) / tokens;
}

}  // namespace gearshift::cuda
