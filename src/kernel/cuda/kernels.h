// The CUDA kernels, one a file; lists.cpp puts them in order.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Kernel sm100_mxfp8_cublaslt;
extern const Kernel sm100_nvfp4_w4a4_cublaslt;
extern const Kernel sm80_bf16_cublaslt;
extern const Kernel sm80_bf16_emulation;
extern const Kernel sm80_f16_cublaslt;
extern const Kernel sm80_fp4_emulation;
extern const Kernel sm80_fp8_block_w8a8_emulation;
extern const Kernel sm80_fp8_block_w8a8_stream;
extern const Kernel sm80_fp8_w8a8_emulation;
extern const Kernel sm80_fp8_w8a8_stream;
extern const Kernel sm80_int4_w4a16_emulation;
extern const Kernel sm80_int4_w4a16_stream;
extern const Kernel sm80_int4_w4a8_emulation;
extern const Kernel sm80_int4_w4a8_stream;
extern const Kernel sm80_int8_w8a16_stream;
extern const Kernel sm80_int8_w8a8_cublaslt;
extern const Kernel sm80_int8_w8a8_emulation;
extern const Kernel sm80_int8_w8a8_stream;
extern const Kernel sm80_mixed_precision_emulation;
extern const Kernel sm80_mxfp4_emulation;
extern const Kernel sm80_mxfp4_stream;
extern const Kernel sm80_mxfp6_emulation;
extern const Kernel sm80_mxfp6_stream;
extern const Kernel sm80_mxfp8_emulation;
extern const Kernel sm80_mxfp8_stream;
extern const Kernel sm80_nvfp4_w4a16_emulation;
extern const Kernel sm80_nvfp4_w4a16_stream;
extern const Kernel sm80_nvfp4_w4a4_emulation;
extern const Kernel sm80_nvfp4_w4a4_stream;
extern const Kernel sm80_w4a8_emulation;
extern const Kernel sm80_w8a16_fp8_emulation;
extern const Kernel sm80_w8a16_fp8_stream;
extern const Kernel sm89_fp8_w8a8_cublaslt;
extern const Kernel sm90_fp8_block_w8a8_cublaslt;
extern const Kernel sm90_fp8_block_w8a8_invariant;
extern const Kernel sm90_fp8_block_w8a8_prefill;
extern const Kernel sm90_fp8_w8a8_invariant;
extern const Kernel sm90_fp8_w8a8_prefill;
extern const Kernel sm90_int4_fp8_prefill;
extern const Kernel sm90_int4_w4a16_prefill;
extern const Kernel sm90_int4_w4a8_prefill;
extern const Kernel sm90_int8_w8a16_prefill;
extern const Kernel sm90_int8_w8a8_prefill;
extern const Kernel sm90_mxfp4_fp8_prefill;
extern const Kernel sm90_mxfp4_prefill;
extern const Kernel sm90_mxfp6_prefill;
extern const Kernel sm90_mxfp8_prefill;
extern const Kernel sm90_nvfp4_w4a16_prefill;
extern const Kernel sm90_nvfp4_w4a4_prefill;
extern const Kernel sm90_w8a16_fp8_prefill;

}  // namespace gearshift
