// The proof with a judge that outlives it, for proving many kernels and batch sizes of one layer.
#pragma once

#include "measure/judge.h"

namespace gearshift {

// prove() of measure.h; `judge` judges the weights of this layer and expert, with the same seed.
Proof prove(const Kernel& kernel, const PreparedLayer& layer, int64_t m, DType dtype, uint64_t seed, int threads,
            int64_t expert, Judge& judge, std::string_view tactic = {});

}  // namespace gearshift
