// Products of a warpgroup, sums[64 rows, N tokens] += a[64, K] * b[N, K]^T with 32 bytes of K: wgmma.m64nN. Thread t of
// the warpgroup holds, of rows 16 (t / 32) + t % 32 / 4 and 8 more, the tokens 8 i + 2 (t % 4), + 1: sums[4 i .. 4 i +
// 3].
#pragma once

#include "kernel/cuda/stage/ptx.cuh"

namespace gearshift::cuda {

enum class Math : uint8_t { bf16, f16, e4m3, s8 };
constexpr int element_bytes(Math math) { return math == Math::bf16 || math == Math::f16 ? 2 : 1; }

template <Math M, int N>
struct Wgmma;

// Operand names and operands, as many as a thread has sums.
#define GEARSHIFT_NAMES_16 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define GEARSHIFT_NAMES_32 GEARSHIFT_NAMES_16 ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define GEARSHIFT_NAMES_48 GEARSHIFT_NAMES_32 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define GEARSHIFT_NAMES_64                                                                                        \
  GEARSHIFT_NAMES_32                                                                                              \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58," \
  "%59,%60,%61,%62,%63"
#define GEARSHIFT_NAMES_96                                                                                        \
  GEARSHIFT_NAMES_64                                                                                              \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90," \
  "%91,%92,%93,%94,%95"
#define GEARSHIFT_NAMES_128                                                                                       \
  GEARSHIFT_NAMES_64                                                                                              \
  ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90," \
  "%91,%92,%93,%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,"    \
  "%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define GEARSHIFT_SUMS_4(mark, s, i) mark(s[i]), mark(s[i + 1]), mark(s[i + 2]), mark(s[i + 3])
#define GEARSHIFT_SUMS_16(mark, s, i)                                                               \
  GEARSHIFT_SUMS_4(mark, s, i), GEARSHIFT_SUMS_4(mark, s, i + 4), GEARSHIFT_SUMS_4(mark, s, i + 8), \
      GEARSHIFT_SUMS_4(mark, s, i + 12)
#define GEARSHIFT_SUMS_32(mark, s, i) GEARSHIFT_SUMS_16(mark, s, i), GEARSHIFT_SUMS_16(mark, s, i + 16)
#define GEARSHIFT_SUMS_48(mark, s, i) GEARSHIFT_SUMS_32(mark, s, i), GEARSHIFT_SUMS_16(mark, s, i + 32)
#define GEARSHIFT_SUMS_64(mark, s, i) GEARSHIFT_SUMS_32(mark, s, i), GEARSHIFT_SUMS_32(mark, s, i + 32)
#define GEARSHIFT_SUMS_96(mark, s, i) GEARSHIFT_SUMS_64(mark, s, i), GEARSHIFT_SUMS_32(mark, s, i + 64)
#define GEARSHIFT_SUMS_128(mark, s, i) GEARSHIFT_SUMS_64(mark, s, i), GEARSHIFT_SUMS_64(mark, s, i + 64)

// COUNT sums per thread; %C .. %C5 are the names of the operands after them. `a` in registers: four words of an A
// fragment.
#define GEARSHIFT_WGMMA(MATH, SUM, MARK, N, COUNT, SHAPE, TAIL, SHARED_TAIL, C, C1, C2, C3, C4, C5)           \
  template <>                                                                                                 \
  struct Wgmma<Math::MATH, N> {                                                                               \
    using Sum = SUM;                                                                                          \
    GEARSHIFT_DEVICE void registers_times_rows(SUM* s, const uint32_t* a, uint64_t b, bool add) {             \
      asm volatile("{.reg .pred p;\nsetp.ne.b32 p,%" #C5 ",0;\nwgmma.mma_async.sync.aligned.m64n" #N SHAPE    \
                   " {" GEARSHIFT_NAMES_##COUNT "},{%" #C ",%" #C1 ",%" #C2 ",%" #C3 "},%" #C4 ",p" TAIL ";}" \
                   : GEARSHIFT_SUMS_##COUNT(MARK, s, 0)                                                       \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)));         \
    }                                                                                                         \
    GEARSHIFT_DEVICE void rows_times_rows(SUM* s, uint64_t a, uint64_t b, bool add) {                         \
      asm volatile("{.reg .pred p;\nsetp.ne.b32 p,%" #C2 ",0;\nwgmma.mma_async.sync.aligned.m64n" #N SHAPE    \
                   " {" GEARSHIFT_NAMES_##COUNT "},%" #C ",%" #C1 ",p" SHARED_TAIL ";}"                       \
                   : GEARSHIFT_SUMS_##COUNT(MARK, s, 0)                                                       \
                   : "l"(a), "l"(b), "r"(static_cast<int>(add)));                                             \
    }                                                                                                         \
  };
#define GEARSHIFT_WGMMA_SIZES(MATH, SUM, MARK, SHAPE, TAIL, SHARED_TAIL)                        \
  GEARSHIFT_WGMMA(MATH, SUM, MARK, 32, 16, SHAPE, TAIL, SHARED_TAIL, 16, 17, 18, 19, 20, 21)    \
  GEARSHIFT_WGMMA(MATH, SUM, MARK, 64, 32, SHAPE, TAIL, SHARED_TAIL, 32, 33, 34, 35, 36, 37)    \
  GEARSHIFT_WGMMA(MATH, SUM, MARK, 96, 48, SHAPE, TAIL, SHARED_TAIL, 48, 49, 50, 51, 52, 53)    \
  GEARSHIFT_WGMMA(MATH, SUM, MARK, 128, 64, SHAPE, TAIL, SHARED_TAIL, 64, 65, 66, 67, 68, 69)   \
  GEARSHIFT_WGMMA(MATH, SUM, MARK, 192, 96, SHAPE, TAIL, SHARED_TAIL, 96, 97, 98, 99, 100, 101) \
  GEARSHIFT_WGMMA(MATH, SUM, MARK, 256, 128, SHAPE, TAIL, SHARED_TAIL, 128, 129, 130, 131, 132, 133)

// After the predicate: signs of a and b, for 16-bit operands in shared memory that they are not transposed.
GEARSHIFT_WGMMA_SIZES(bf16, float, "+f", "k16.f32.bf16.bf16", ",1,1,0", ",1,1,0,0")
GEARSHIFT_WGMMA_SIZES(f16, float, "+f", "k16.f32.f16.f16", ",1,1,0", ",1,1,0,0")
GEARSHIFT_WGMMA_SIZES(e4m3, float, "+f", "k32.f32.e4m3.e4m3", ",1,1", ",1,1")
GEARSHIFT_WGMMA_SIZES(s8, int32_t, "+r", "k32.s32.s8.s8", "", "")

#undef GEARSHIFT_WGMMA_SIZES
#undef GEARSHIFT_WGMMA

}  // namespace gearshift::cuda
