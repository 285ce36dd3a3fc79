// Elements of activations as fp32, by type.
#pragma once

#include <cstring>

#include "format/bf16.h"
#include "format/fp16.h"
#include "gearshift/base.h"

namespace gearshift {

struct F32Element {
  static float load(const void* base, int64_t i) { return static_cast<const float*>(base)[i]; }
  static void store(void* base, int64_t i, float value) { static_cast<float*>(base)[i] = value; }
};
struct F16Element {
  static float load(const void* base, int64_t i) { return format::decode_fp16(static_cast<const uint16_t*>(base)[i]); }
  static void store(void* base, int64_t i, float value) {
    static_cast<uint16_t*>(base)[i] = format::encode_fp16(value);
  }
};
struct Bf16Element {
  static float load(const void* base, int64_t i) { return format::decode_bf16(static_cast<const uint16_t*>(base)[i]); }
  static void store(void* base, int64_t i, float value) {
    static_cast<uint16_t*>(base)[i] = format::encode_bf16(value);
  }
};

// Calls f with the one of `dtype`. REQUIRES: f32, f16 or bf16.
template <class F>
void with_elements(DType dtype, const F& f) {
  if (dtype == DType::f32) return f(F32Element{});
  if (dtype == DType::f16) return f(F16Element{});
  f(Bf16Element{});
}

inline int64_t bytes_of_element(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

}  // namespace gearshift
