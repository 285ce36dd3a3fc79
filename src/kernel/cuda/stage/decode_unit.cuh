// Units of 16 rows x 128 columns (kernel/layout/rows16.h) from shared memory to A fragments of bf16 or fp16 (Half), one
// type per format.
//
//   bytes, scale_bytes   of a unit
//   Raw, load            what a lane reads; nothing is computed, so that the slot may be refilled
//   Regs, expand         scales made ready
//   step                 fragment of columns 16 j .. 16 j + 15
//   left                 what results are multiplied by besides their record's factor
//   groups               0: the fragment holds finished values (up to the record's factor); otherwise it holds exact
//   integers,
//                        and each of the unit's `groups` equal shares of columns has a scale for its fp32 sum:
//                        group_scale
#pragma once

#include "kernel/cuda/stage/ptx.cuh"

namespace gearshift::cuda {

GEARSHIFT_DEVICE uint32_t word_of_step(const uint4* w, int j) {
  const uint4& q = w[j >> 2];
  return (j & 3) == 0 ? q.x : (j & 3) == 1 ? q.y : (j & 3) == 2 ? q.z : q.w;
}

// Eight e2m1 codes (kernel/layout/e2m1_word.h) to bf16, times 2^-126.
GEARSHIFT_DEVICE void e2m1_fragment(uint32_t w, uint32_t* a) {
  a[0] = w & 0x81C081C0u;
  a[1] = (w << 3) & 0x81C081C0u;
  a[2] = ((w << 6) & 0x01C001C0u) | ((w << 2) & 0x80008000u);
  a[3] = ((w >> 3) & 0x01C001C0u) | ((w << 1) & 0x80008000u);
}
// The same to fp16, times 2^-14.
GEARSHIFT_DEVICE void e2m1_fragment_f16(uint32_t w, uint32_t* a) {
  constexpr uint32_t magnitude = 0x0E000E00u, sign = 0x80008000u;
  const uint32_t by3 = w << 3;
  a[0] = (by3 & magnitude) | (w & sign);
  a[1] = ((w << 6) & magnitude) | (by3 & sign);
  a[2] = ((w << 9) & magnitude) | ((w << 2) & sign);
  a[3] = (w & magnitude) | ((w << 1) & sign);
}
template <bool Half>
GEARSHIFT_DEVICE uint32_t product_16bit(uint32_t a, uint32_t b) {
  return Half ? product_f16x2(a, b) : product_bf16x2(a, b);
}
template <bool Half>
GEARSHIFT_DEVICE uint32_t difference_16bit(uint32_t a, uint32_t b) {
  return Half ? difference_f16x2(a, b) : difference_bf16x2(a, b);
}
// Registers 0 and 2 belong to row r (low half of the scale word), 1 and 3 to row r + 8.
template <bool Half = false>
GEARSHIFT_DEVICE void scale_fragment(uint32_t* a, uint32_t scales) {
  const uint32_t low = low_twice(scales), high = high_twice(scales);
  a[0] = product_16bit<Half>(a[0], low);
  a[1] = product_16bit<Half>(a[1], high);
  a[2] = product_16bit<Half>(a[2], low);
  a[3] = product_16bit<Half>(a[3], high);
}

// A scale byte is 5 bits of exponent and 3 of mantissa: either type takes it by a shift, and leaves the same 2^-7.
template <bool Half>
struct Nvfp4Unit {
  static constexpr bool row_major = false, half = Half;
  static constexpr float left = 1.f;
  static constexpr int bytes = 1024 + 128, scale_bytes = 128, groups = 0;
  struct Raw {
    uint4 codes[2], scales;
  };
  struct Regs {
    uint4 codes[2];
    uint32_t scales[8];
  };
  GEARSHIFT_DEVICE void load(Raw& raw, uint32_t unit, int lane) {
    raw.codes[0] = load_shared4(unit + lane * 16);
    raw.codes[1] = load_shared4(unit + 512 + lane * 16);
    raw.scales = load_shared4(unit + 1024 + (lane >> 2) * 16);
  }
  GEARSHIFT_DEVICE void expand(Regs& regs, const Raw& raw) {
    const uint32_t exponent = in_register(0x70007000u);
    const uint32_t words[4] = {raw.scales.x, raw.scales.y, raw.scales.z, raw.scales.w};
    regs.codes[0] = raw.codes[0];
    regs.codes[1] = raw.codes[1];
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t second = __byte_perm(words[i], 0, 0x2301);
      regs.scales[2 * i] = Half ? (words[i] & 0x0FF00FF0u) << 3 : and_or<0x0FF00FF0u>(words[i], exponent);
      regs.scales[2 * i + 1] = Half ? (second & 0x0FF00FF0u) << 3 : and_or<0x0FF00FF0u>(second, exponent);
    }
  }
  GEARSHIFT_DEVICE void step(const Regs& regs, int j, uint32_t* a) {
    if constexpr (Half)
      e2m1_fragment_f16(word_of_step(regs.codes, j), a);
    else
      e2m1_fragment(word_of_step(regs.codes, j), a);
    scale_fragment<Half>(a, regs.scales[j]);
  }
  GEARSHIFT_DEVICE float2 group_scale(const Regs&, int, bool) { return make_float2(1, 1); }
};

// Powers of two reach further than fp16 does: there they are applied to fp32 sums.
template <bool Half>
struct Mxfp4Unit {
  static constexpr bool row_major = false, half = Half;
  static constexpr float left = Half ? 0x1p15f : 1.f;
  static constexpr int bytes = 1024 + 64, scale_bytes = 64, groups = Half ? 4 : 0;
  struct Raw {
    uint4 codes[2];
    uint2 scales;
  };
  struct Regs {
    uint4 codes[2];
    uint32_t scales[4];
  };
  GEARSHIFT_DEVICE void load(Raw& raw, uint32_t unit, int lane) {
    raw.codes[0] = load_shared4(unit + lane * 16);
    raw.codes[1] = load_shared4(unit + 512 + lane * 16);
    raw.scales = load_shared2(unit + 1024 + (lane >> 2) * 8);
  }
  GEARSHIFT_DEVICE void expand(Regs& regs, const Raw& raw) {
    regs.codes[0] = raw.codes[0];
    regs.codes[1] = raw.codes[1];
    regs.scales[0] = (raw.scales.x << 7) & 0x7F807F80u;
    regs.scales[1] = (raw.scales.x >> 1) & 0x7F807F80u;
    regs.scales[2] = (raw.scales.y << 7) & 0x7F807F80u;
    regs.scales[3] = (raw.scales.y >> 1) & 0x7F807F80u;
  }
  GEARSHIFT_DEVICE void step(const Regs& regs, int j, uint32_t* a) {
    if constexpr (Half) {
      e2m1_fragment_f16(word_of_step(regs.codes, j), a);
      return;
    }
    e2m1_fragment(word_of_step(regs.codes, j), a);
    scale_fragment<false>(a, regs.scales[j >> 1]);
  }
  // 2^(field - 254): at most 1, and 0 for what cannot be seen beside it.
  GEARSHIFT_DEVICE float power_of(uint32_t field) { return __uint_as_float(field > 127u ? (field - 127u) << 23 : 0u); }
  GEARSHIFT_DEVICE float2 group_scale(const Regs& regs, int g, bool) {
    return make_float2(power_of(regs.scales[g] >> 7 & 255u), power_of(regs.scales[g] >> 23));
  }
};

// Groups: 1, 2 or 4 scales per row and unit. Zeros: a zero point beside each of them.
template <int Groups, bool Zeros, bool Half = false>
struct Int4Unit {
  static constexpr bool row_major = false, half = Half;
  static constexpr float left = 1.f;
  static constexpr int scale_bytes = Groups * 32 * (Zeros ? 2 : 1), bytes = 1024 + scale_bytes, groups = Groups;
  struct Raw {
    uint4 codes[2];
    uint32_t scales[Groups], zeros[Zeros ? Groups : 1];
  };
  struct Regs {
    uint4 codes[2];
    uint32_t scales[Groups], zeros[Zeros ? Groups : 1], exponent;
  };
  GEARSHIFT_DEVICE void load(Raw& raw, uint32_t unit, int lane) {
    raw.codes[0] = load_shared4(unit + lane * 16);
    raw.codes[1] = load_shared4(unit + 512 + lane * 16);
#pragma unroll
    for (int g = 0; g < Groups; g++) {
      raw.scales[g] = load_shared1(unit + 1024 + g * 32 + (lane >> 2) * 4);
      if (Zeros) raw.zeros[g] = load_shared1(unit + 1024 + (Groups + g) * 32 + (lane >> 2) * 4);
    }
  }
  GEARSHIFT_DEVICE void expand(Regs& regs, const Raw& raw) {
    regs.codes[0] = raw.codes[0];
    regs.codes[1] = raw.codes[1];
    // 128 of bf16 or 1024 of fp16: the code becomes its lowest bits.
    regs.exponent = in_register(Half ? 0x64006400u : 0x43004300u);
#pragma unroll
    for (int g = 0; g < Groups; g++) {
      regs.scales[g] = raw.scales[g];
      if (Zeros) regs.zeros[g] = Half ? (raw.zeros[g] & 0x001F001Fu) | 0x64006400u : raw.zeros[g];
    }
  }
  GEARSHIFT_DEVICE void step(const Regs& regs, int j, uint32_t* a) {
    const uint32_t w = word_of_step(regs.codes, j);
    const uint32_t zeros = Zeros ? regs.zeros[j * Groups / 8] : Half ? 0x64086408u : 0x43084308u;  // 8 more
    const uint32_t low = low_twice(zeros), high = high_twice(zeros);
    a[0] = difference_16bit<Half>(and_or<0x000F000Fu>(w, regs.exponent), low);
    a[1] = difference_16bit<Half>(and_or<0x000F000Fu>(w >> 4, regs.exponent), high);
    a[2] = difference_16bit<Half>(and_or<0x000F000Fu>(w >> 8, regs.exponent), low);
    a[3] = difference_16bit<Half>(and_or<0x000F000Fu>(w >> 12, regs.exponent), high);
  }
  // Of rows r and r + 8.
  GEARSHIFT_DEVICE float2 group_scale(const Regs& regs, int g, bool half) {
    const uint32_t s = regs.scales[g];
    const float low = half ? from_f16(static_cast<uint16_t>(s)) : __uint_as_float(s << 16);
    const float high = half ? from_f16(static_cast<uint16_t>(s >> 16)) : __uint_as_float(s & 0xFFFF0000u);
    return make_float2(low, high);
  }
};

}  // namespace gearshift::cuda
