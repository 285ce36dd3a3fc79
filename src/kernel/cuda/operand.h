// What x becomes before a CUDA kernel multiplies it: itself where that will do, else a copy in the workspace, quantized
// by the checkpoint's recipe, padded with zeros and aligned.
#pragma once

#include "gearshift/kernel.h"
#include "kernel/cuda/stage/prepare_x.h"

namespace gearshift::cuda {

// Where scales of token groups go.
enum class GroupScales : uint8_t {
  in_values,   // the copy of x holds code times scale
  by_row,      // fp32 [rows][groups]
  by_group,    // fp32 [groups][rows rounded up to 4]
  tiles_128x4  // e4m3 or e8m0 bytes in tiles (stage/prepare_x.h)
};

struct OperandNeeds {
  ActivationUse use = ActivationUse::as_checkpoint;
  DType element = DType::bf16;  // bf16, f16 or f32: values that it holds exactly; u8: codes of a quantized x
  int64_t columns = 0;          // at least K; beyond K zeros (of a copy)
  GroupScales group_scales = GroupScales::in_values;
  int64_t group = 0;       // columns per scale, where group_scales says so
  bool row_sums = false;   // int8 codes: also their sums
  ChosenRows chosen = {};  // where rows are not those of x one by one
};

struct Operand {
  const void* data = nullptr;           // [rows, K...] of `element`
  int64_t stride = 0;                   // elements
  const float* token_factor = nullptr;  // [rows]
  double factor = 1;                    // of every result
  bool padded = false;                  // columns up to the stride are there, and zero
  const float* group_scales = nullptr;  // as OperandNeeds says
  int64_t group_scale_row = 0, group_scale_step = 0;
  const uint8_t* scale_bytes = nullptr;  // tiles_128x4
  const int32_t* row_sums = nullptr;     // [rows]
  const int32_t* zero_points = nullptr;  // [rows]: codes of u8 keep a zero point of their own
};

// Bytes of workspace for `rows` rows of one version of x, whether or not a call makes a copy.
int64_t operand_bytes(const OperandNeeds& needs, int64_t rows);

// Makes rows [m0, m0 + rows) of the version of x that `part` reads; `scratch`: operand_bytes(...). `pre_scale`: device
// vector of the part, or nullptr; `gather`: device vector that says which column of x comes where, or nullptr. False: a
// launch failed.
bool make_operand(const RunArgs& args, const OperandNeeds& needs, size_t part, int64_t m0, int64_t rows,
                  const float* pre_scale, uint8_t* scratch, Operand& out, const int32_t* gather = nullptr);

}  // namespace gearshift::cuda
