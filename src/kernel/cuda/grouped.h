// One projection of all experts as one launch over tiles of tokens that share an expert: the streaming decode kernel
// for few tokens each, the prefill kernel for many. Kernels, layouts and packed weights are those of linear layers.
// What stands around the projections (stage/sort_tokens.h, stage/expert_rows.h) can be called in a build without CUDA
// code too: it is refused.
#pragma once

#include <span>
#include <string>

#include "gearshift/kernel.h"
#include "kernel/cuda/stage/expert_rows.h"
#include "kernel/cuda/stage/group_tiles.h"
#include "kernel/cuda/stage/prepare_x.h"
#include "kernel/cuda/stage/sort_tokens.h"
#include "kernel/cuda/stage/stream_call.h"

namespace gearshift::cuda {

struct GroupedCall {
  const Kernel* kernel = nullptr;
  std::span<const LayerWeights> experts;
  const uint8_t* packed = nullptr;  // of the first expert; the next one's stand group.expert_bytes behind it
  ConstMatrix x;
  ChosenRows chosen;   // count, source (which row of x a sorted row is; nullptr: x is sorted), expert and scalars
  int64_t rows = 0;    // sorted rows at most
  Matrix y;            // sorted rows
  GroupedTiles group;  // but x_rows and x_divisor
  // The function after the first projection, whose hidden values y then has; where fused_pairs(...) is not none.
  StreamFunction function;
  int64_t tile_tokens = 0;  // that the tiles were made with
  double busy_tiles = 1;    // how many are expected not to be empty
  std::span<uint8_t> workspace;
  void* stream = nullptr;
  std::string_view tactic;
};

// Whether a kernel has a form for many experts at once, and whether that is the one for many tokens each.
bool has_group_form(const Kernel& kernel);
bool is_prefill_group(const Kernel& kernel);
// Why it cannot run such experts in one launch; "": it can.
std::string refuses_group(const Kernel& kernel, std::span<const LayerWeights> experts);
// How the launch of a first projection finds gate and up to apply the function itself; none: it cannot.
StreamFunction::Pairs fused_pairs(const Kernel& kernel, const LayerSpec& layer, bool gated);
// What quantizers need to know of each expert; empty where it is the same of all.
std::vector<ExpertScalars> expert_scalars(const Kernel& kernel, std::span<const LayerWeights> experts);
// Tokens of a tile, for experts that expect `rows` rows each.
int64_t group_tile_tokens(const Kernel& kernel, double rows);
// For `rows` sorted rows, which may be gathered or quantized first.
int64_t grouped_workspace(const Kernel& kernel, const LayerSpec& layer, int64_t rows);
// REQUIRES: refuses_group(...) is empty. False: a launch failed, or the tactic is none for this shape.
bool run_grouped(const GroupedCall& call);
// Names that GroupedCall::tactic takes.
std::vector<std::string_view> grouped_tactics(const Kernel& kernel);

}  // namespace gearshift::cuda
