// How many threads a kernel works with.
#pragma once

#include <omp.h>

namespace gearshift {

// One inside a parallel region of the caller, which has its own threads at work; what was asked for elsewhere. Kernels
// are written for any team up to the size that their workspace was made for.
inline int team_size(int threads) { return omp_in_parallel() != 0 ? 1 : threads; }

}  // namespace gearshift
