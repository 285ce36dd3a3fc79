// What `run` works on: rows of the plan with made-up activations, or with those of an input file.
#pragma once

#include <memory>

#include "measure/activations.h"
#include "pipeline/expert_pairs.h"

namespace gearshift {

// What a router said about the tokens of a block.
struct GivenRouting {
  int64_t top_k = 0;
  std::vector<int32_t> experts;  // [M, top_k]
  std::vector<float> weights;
};

// One row of the plan to run on one x; or, where `block` is set, one expert block. A part of a fused row runs the whole
// row and keeps its own columns.
struct RunJob {
  size_t row = 0;  // index of the row
  int64_t expert_begin = 0, expert_end = 1;
  std::shared_ptr<const OwnedMatrix> x;                   // nullptr: made-up activations for every batch size
  std::string output;                                     // name of the result; "" for rows that have more than one
  int64_t column = 0, columns = 0;                        // the part of the result
  std::shared_ptr<const ExpertPair> block = nullptr;      // `row` is its first projection
  std::shared_ptr<const GivenRouting> routing = nullptr;  // nullptr: made up
};
struct RunJobs {
  std::vector<RunJob> jobs;
  std::vector<std::string> not_run;
};

RunJobs jobs_with_made_up_input(const std::vector<LayerSpec>& rows, bool with_blocks);

// Reads `path`: one tensor `x` for every row, or tensors named after rows, parts of fused rows, modules of experts, or
// expert blocks ("….experts"); each [M,K], F32, F16, BF16 or F64, rounded to `dtype`. A block needs a router's choice
// as well: `topk_ids` (integers) and `topk_weights` (floats), each [M, top_k], beside `x`, or with the block's name and
// a dot in front. Errors: usage (no safetensors file, no layer of that name, a shape or dtype that does not fit, a
// value that is not finite), damaged_checkpoint, runtime (memory).
Result<RunJobs> jobs_from_file(const std::string& path, const std::vector<LayerSpec>& rows, DType dtype);

}  // namespace gearshift
