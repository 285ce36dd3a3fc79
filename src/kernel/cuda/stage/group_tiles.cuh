// Reading the tiles of a group where they are used.
#pragma once

#include "kernel/cuda/stage/group_tiles.h"
#include "kernel/cuda/stage/ptx.cuh"

namespace gearshift::cuda {

// Tiles are written by launches before this one: past the first-level cache.
GEARSHIFT_DEVICE GroupTile load_group_tile(const GroupTile* tile) {
  const int4 v = __ldcg(reinterpret_cast<const int4*>(tile));
  return {v.x, v.y, v.z, v.w};
}
GEARSHIFT_DEVICE GroupTile group_tile(const GroupedTiles& group, int i) {
  if (group.tiles != nullptr) return load_group_tile(group.tiles + i);
  const int expert = __ldcg(group.experts + i);
  return {static_cast<uint32_t>(expert) < static_cast<uint32_t>(group.expert_count) ? expert : -1, i, 1, 0};
}

}  // namespace gearshift::cuda
