// Launches of the prefill kernel for experts (stage/prefill_group.cuh), by format.
#pragma once

#include "kernel/cuda/stage/group_tiles.h"
#include "kernel/cuda/stage/prefill_call.h"

namespace gearshift::cuda {

// Rows of x sorted, `call.rows` those of the first expert, the map of weights a stack of matrices. False: the device
// refuses it. It may start while the launch before it still runs.
bool launch_prefill_group_nvfp4(const PrefillCall& call, const GroupedTiles& group, const PrefillLaunch& launch);
bool launch_prefill_group_mxfp4(const PrefillCall& call, const GroupedTiles& group, const PrefillLaunch& launch);
// Scales of 128, 64 or 32 columns.
bool launch_prefill_group_int4(const PrefillCall& call, const GroupedTiles& group, const PrefillLaunch& launch,
                               int columns, bool zeros);

}  // namespace gearshift::cuda
