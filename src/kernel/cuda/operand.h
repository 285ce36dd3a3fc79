// What x becomes before a CUDA kernel multiplies it: itself where that will do, else a copy in the workspace, quantized
// by the checkpoint's recipe, padded with zeros and aligned.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift::cuda {

struct OperandNeeds {
  ActivationUse use = ActivationUse::as_checkpoint;
  DType element = DType::bf16;  // bf16, or f32 where 16 bits of the activations' type would lose some
  int64_t columns = 0;          // at least K; beyond K zeros (of a copy)
};

struct Operand {
  const void* data = nullptr;           // [rows, K...] of `element`
  int64_t stride = 0;                   // elements
  const float* token_factor = nullptr;  // [rows]
  double factor = 1;                    // of every result
  bool padded = false;                  // columns up to the stride are there, and zero
};

// Bytes of workspace for `rows` rows of one version of x, whether or not a call makes a copy.
int64_t operand_bytes(const OperandNeeds& needs, int64_t rows);

// Makes rows [m0, m0 + rows) of the version of x that `part` reads; `scratch`: operand_bytes(...). `pre_scale`: device
// vector of the part, or nullptr. False: a launch failed.
bool make_operand(const RunArgs& args, const OperandNeeds& needs, size_t part, int64_t m0, int64_t rows,
                  const float* pre_scale, uint8_t* scratch, Operand& out);

}  // namespace gearshift::cuda
