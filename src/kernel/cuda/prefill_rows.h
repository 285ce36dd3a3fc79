// The prefill kernels for 8-bit codes by 8-bit codes, on the rows that cuBLASLt reads too. The engine behind their
// contracts.
#pragma once

#include "kernel/cuda/library_w8a8.h"
#include "kernel/cuda/prefill_tactics.h"

namespace gearshift {

// `invariant`: a row's bits do not depend on the others, whatever M is; slower. The caller adds families and
// granularities.
Kernel make_cuda_prefill_rows(std::string_view name, CodeProduct product, bool invariant = false);

// The variants of such a kernel.
cuda::PrefillTable prefill_rows_table(CodeProduct product, bool invariant);

}  // namespace gearshift
