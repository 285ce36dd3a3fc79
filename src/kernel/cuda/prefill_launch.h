// What every launch of a prefill kernel has in common, whatever its weights.
#pragma once

#include "gearshift/kernel.h"
#include "kernel/cuda/prefill_tactics.h"
#include "kernel/cuda/stage/prefill_call.h"
#include "kernel/output.h"

namespace gearshift::cuda {

// Where blocks leave sums for each other.
struct PrefillScratch {
  uint64_t* flags = nullptr;
  float* partials = nullptr;
};
PrefillScratch carve_prefill(Carver& carver);

// Chooses tactic and schedule (args.tactic, where it says one), and fills in all that does not depend on the weights.
// False: an unknown tactic, or one that makes no sense there.
bool begin_prefill(const RunArgs& args, const PrefillTable& table, const PrefillSize& size,
                   const PrefillScratch& scratch, PrefillCall& call, PrefillLaunch& launch);

}  // namespace gearshift::cuda
