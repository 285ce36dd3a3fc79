// The instruction set that CPU kernels use: one choice for the whole process, read by every kernel.
#pragma once

#include "gearshift/device.h"

namespace gearshift {

// The processors on which every kernel of this folder has passed the family test, with each level up to theirs forced
// (AMD EPYC with AVX2; Intel Xeon with AVX-512 VNNI, BF16 and AMX).
inline std::vector<std::string_view> verified_processors() {
  return {"x86_64", "x86_64+avx2", "x86_64+avx512", "x86_64+avx512_vnni", "x86_64+avx512_bf16", "x86_64+amx"};
}

// The levels for which the kernels of this folder have code of their own; a processor takes the highest that it covers.
inline std::vector<Isa> code_paths() {
#if defined(__x86_64__)
  return {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_vnni, Isa::avx512_bf16, Isa::amx};
#else
  return {Isa::portable};
#endif
}

// At most this level from now on (what GEARSHIFT_MAX_ISA says); never more than the processor has. Not while kernels
// run.
void set_max_isa(Isa max);
// The level in use. The first call asks the processor.
Isa active_isa();

}  // namespace gearshift
