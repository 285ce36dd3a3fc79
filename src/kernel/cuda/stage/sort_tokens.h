// A router's choice on the device: its entries (token * top_k + slot) sorted by expert, those of one expert in their
// own order, and the tiles that grouped launches work on.
#pragma once

#include <cstdint>

#include "kernel/cuda/stage/group_tiles.h"

namespace gearshift::cuda {

inline constexpr int most_experts = 2048;

struct SortTokens {
  const int32_t* experts = nullptr;  // [entries]; any that is not 0 .. expert_count - 1 belongs to no expert here
  int entries = 0, top_k = 1, expert_count = 0;
  // [entries] each: token and expert of a sorted row, and the sorted row of an entry (-1: none).
  int32_t *token = nullptr, *expert = nullptr, *place = nullptr;
  int32_t* first = nullptr;  // [expert_count + 1]: where an expert's rows begin
  GroupTile* tiles = nullptr;
  int tile_count = 0, tile_tokens = 1;  // most_group_tiles(...); all are written
};
// Queues it. Waits for nothing and needs no memory but that. False: a launch failed.
bool sort_tokens(const SortTokens& call, void* stream);

}  // namespace gearshift::cuda
