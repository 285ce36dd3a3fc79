#include "kernel/cpu/stage/pieces.h"

namespace gearshift {

#if defined(__x86_64__)

namespace {

// Processors that start four vector operations in a cycle, two of them dots of bf16 pairs (Zen 5): they decode beside
// the dots, for any number of rows quicker than panels are written and read. Those with AMX, all of one maker, start
// two, and one dot of bf16 pairs.
bool wide_issue(Isa isa) { return isa_covers(isa, Isa::avx512_bf16) && !isa_covers(isa, Isa::amx); }

}  // namespace

// Without VNNI the 256-bit multipliers serve AVX-512 too.
Pieces dot_registers(Isa isa, int64_t m) {
  if (isa_covers(isa, Isa::avx512_vnni)) return dot_registers_vnni(isa_covers(isa, Isa::avx512_bf16));
  return isa_covers(isa, Isa::avx2) ? dot_registers_avx2(m) : dot_panel_portable();
}
Pieces dot_panel(Isa isa) {
  if (wide_issue(isa)) return dot_registers_vnni(true);
  if (isa_covers(isa, Isa::avx512_vnni)) return dot_panel_vnni();
  return isa_covers(isa, Isa::avx2) ? dot_panel_avx2() : dot_panel_portable();
}
Pieces float_registers(Isa isa, bool bf16, int64_t m) {
  if (bf16 && wide_issue(isa)) return bf16_registers();
  if (isa_covers(isa, Isa::avx512)) return float_registers_avx512(m);
  return isa_covers(isa, Isa::avx2) ? float_registers_avx2(m) : float_panel_portable();
}
Pieces float_panel(Isa isa, bool bf16, int64_t span) {
  if (bf16 && isa_covers(isa, Isa::amx)) return bf16_panel_amx();
  // Sums of sixteen columns are scaled too often: scales inside the panel.
  if (bf16 && wide_issue(isa)) return span < 32 ? bf16_panel_dot() : bf16_registers();
  if (isa_covers(isa, Isa::avx512)) return float_panel_avx512();
  return isa_covers(isa, Isa::avx2) ? float_panel_avx2() : float_panel_portable();
}

#else

Pieces dot_registers(Isa, int64_t) { return dot_panel_portable(); }
Pieces dot_panel(Isa) { return dot_panel_portable(); }
Pieces float_registers(Isa, bool, int64_t) { return float_panel_portable(); }
Pieces float_panel(Isa, bool, int64_t) { return float_panel_portable(); }

#endif

}  // namespace gearshift
