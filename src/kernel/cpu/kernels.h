// Every kernel that a CPU list names; each is written in the file of its name.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

extern const Kernel cpu_nvfp4_w4a4_dot;
extern const Kernel cpu_nvfp4_w4a4_dot_panel;
extern const Kernel cpu_nvfp4_w4a4_amx_panel;
extern const Kernel cpu_nvfp4_w4a16_fma;
extern const Kernel cpu_nvfp4_w4a16_fma_panel;
extern const Kernel cpu_mxfp4_dot;
extern const Kernel cpu_mxfp4_dot_panel;
extern const Kernel cpu_mxfp4_amx_panel;
extern const Kernel cpu_mxfp4_fma;
extern const Kernel cpu_mxfp4_fma_panel;
extern const Kernel cpu_int4_fma;
extern const Kernel cpu_int4_fma_panel;
extern const Kernel cpu_int4_a8_dot;
extern const Kernel cpu_int4_a8_dot_panel;
extern const Kernel cpu_bf16_fma;
extern const Kernel cpu_int8_w8a8_dot;
extern const Kernel cpu_int8_fma;
extern const Kernel cpu_fp8_fma;
extern const Kernel cpu_fp8_amx;
extern const Kernel cpu_fp6_fma;

extern const Kernel cpu_bf16_emulation;
extern const Kernel cpu_w8a16_fp8_emulation;
extern const Kernel cpu_fp8_w8a8_emulation;
extern const Kernel cpu_fp8_block_w8a8_emulation;
extern const Kernel cpu_mxfp8_emulation;
extern const Kernel cpu_mxfp6_emulation;
extern const Kernel cpu_mxfp4_emulation;
extern const Kernel cpu_nvfp4_w4a4_emulation;
extern const Kernel cpu_nvfp4_w4a16_emulation;
extern const Kernel cpu_int8_w8a8_emulation;
extern const Kernel cpu_mixed_precision_emulation;
extern const Kernel cpu_w4a8_emulation;

}  // namespace gearshift
