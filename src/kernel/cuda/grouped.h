// One projection of all experts as one launch: the streaming decode kernel over tiles of tokens that share an expert.
// Kernels, layouts and packed weights are those of linear layers. What stands around the projections (stage/
// sort_tokens.h, stage/expert_rows.h) can be called in a build without CUDA code too: it is refused.
#pragma once

#include <span>
#include <string>

#include "gearshift/kernel.h"
#include "kernel/cuda/stage/expert_rows.h"
#include "kernel/cuda/stage/group_tiles.h"
#include "kernel/cuda/stage/sort_tokens.h"

namespace gearshift::cuda {

struct GroupedCall {
  const Kernel* kernel = nullptr;
  std::span<const LayerWeights> experts;
  const uint8_t* packed = nullptr;  // of the first expert; the next one's stand group.expert_bytes behind it
  ConstMatrix x;
  Matrix y;  // sorted rows
  GroupedTiles group;
  int64_t tile_tokens = 0;  // that the tiles were made with
  double busy_tiles = 1;    // how many are expected not to be empty
  std::span<uint8_t> workspace;
  void* stream = nullptr;
  std::string_view tactic;
};

// Why a kernel cannot run such experts in one launch; "": it can.
std::string refuses_group(const Kernel& kernel, std::span<const LayerWeights> experts);
// Tokens of a tile, for experts that expect `rows` rows each.
int64_t group_tile_tokens(double rows);
// For x of so many rows, which may be quantized first.
int64_t grouped_workspace(const Kernel& kernel, const LayerSpec& layer, int64_t rows);
// REQUIRES: refuses_group(...) is empty. False: a launch failed, or the tactic is none for this shape.
bool run_grouped(const GroupedCall& call);
// Names that GroupedCall::tactic takes.
std::vector<std::string_view> grouped_tactics(const Kernel& kernel);

}  // namespace gearshift::cuda
