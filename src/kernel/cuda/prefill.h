// The prefill kernels that multiply 16-bit floats: one for each format of the streaming decode kernels, on the same
// packed weights, for any number of tokens. The engine behind their contracts.
#pragma once

#include "gearshift/kernel.h"
#include "kernel/cuda/prefill_tactics.h"

namespace gearshift {

// A kernel on `layout`: code_rows or one of the rows16 family. The caller adds families, formats and where it has run.
Kernel make_cuda_prefill(std::string_view name, ActivationUse use, const Layout& layout);

// The variants of such a kernel, for activations of this type, and how large a call is: rows of weights by m tokens.
cuda::PrefillTable prefill_table(const LayerSpec& layer, ActivationUse use, const Layout& layout, DType dtype);
cuda::PrefillSize prefill_size(const LayerSpec& layer, const Layout& layout, int64_t rows, int64_t m);

// fp16 has no room for scales of columns beside those of rows.
ConditionalContract fp16_without_group_scales();
// Powers of two want bf16's range: fp16 activations will do where they are quantized, to one of these formats, and so
// become bf16.
ConditionalContract fp16_if_quantized(std::vector<Format> formats);

}  // namespace gearshift
