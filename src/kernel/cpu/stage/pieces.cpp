#include "kernel/cpu/stage/pieces.h"

namespace gearshift {

#if defined(__x86_64__)

// Without VNNI the 256-bit multipliers serve AVX-512 too.
Pieces dot_registers(Isa isa, int64_t m) {
  if (isa_covers(isa, Isa::avx512_vnni)) return dot_registers_vnni(isa_covers(isa, Isa::avx512_bf16));
  return isa_covers(isa, Isa::avx2) ? dot_registers_avx2(m) : dot_panel_portable();
}
Pieces dot_panel(Isa isa) {
  // Four multipliers and shufflers a cycle (Zen 5) decode beside the dots, for any number of rows quicker than panels
  // are written and read; processors with AMX (all of one maker) have half of them.
  if (isa_covers(isa, Isa::avx512_bf16) && !isa_covers(isa, Isa::amx)) return dot_registers_vnni(true);
  if (isa_covers(isa, Isa::avx512_vnni)) return dot_panel_vnni();
  return isa_covers(isa, Isa::avx2) ? dot_panel_avx2() : dot_panel_portable();
}
Pieces float_registers(Isa isa, int64_t m) {
  if (isa_covers(isa, Isa::avx512)) return float_registers_avx512(m);
  return isa_covers(isa, Isa::avx2) ? float_registers_avx2(m) : float_panel_portable();
}
Pieces float_panel(Isa isa, bool bf16) {
  if (bf16 && isa_covers(isa, Isa::amx)) return bf16_panel_amx();
  if (bf16 && isa_covers(isa, Isa::avx512_bf16)) return bf16_panel_avx512();
  if (isa_covers(isa, Isa::avx512)) return float_panel_avx512();
  return isa_covers(isa, Isa::avx2) ? float_panel_avx2() : float_panel_portable();
}

#else

Pieces dot_registers(Isa, int64_t) { return dot_panel_portable(); }
Pieces dot_panel(Isa) { return dot_panel_portable(); }
Pieces float_registers(Isa, int64_t) { return float_panel_portable(); }
Pieces float_panel(Isa, bool) { return float_panel_portable(); }

#endif

}  // namespace gearshift
