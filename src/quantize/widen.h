// Stored floats of an input checkpoint <-> fp32. Bytes may have any alignment; files are little-endian, as is every
// host this builds for.
#pragma once

#include <cstring>

#include "format/bf16.h"
#include "format/fp16.h"
#include "gearshift/base.h"

namespace gearshift::quantize_detail {

inline bool is_float16_or_32(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// REQUIRES: is_float16_or_32(dtype)
inline float load_float(const uint8_t* bytes, DType dtype) {
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  uint16_t code;
  std::memcpy(&code, bytes, sizeof code);
  return dtype == DType::bf16 ? format::decode_bf16(code) : format::decode_fp16(code);
}

inline void widen(const uint8_t* bytes, DType dtype, int64_t count, float* out) {
  const int64_t size = bits(dtype) / 8;
  for (int64_t i = 0; i < count; ++i) out[i] = load_float(bytes + i * size, dtype);
}

// Rounds to nearest even into the stored type. Returns what was stored.
inline float store_float(float value, DType dtype, uint8_t* bytes) {
  if (dtype == DType::f32) {
    std::memcpy(bytes, &value, sizeof value);
    return value;
  }
  const uint16_t code = dtype == DType::bf16 ? format::encode_bf16(value) : format::encode_fp16(value);
  std::memcpy(bytes, &code, sizeof code);
  return load_float(bytes, dtype);
}

// The spacing of the type's numbers at 1.
inline float epsilon(DType dtype) { return dtype == DType::f32 ? 0x1p-23f : dtype == DType::bf16 ? 0x1p-7f : 0x1p-10f; }
// A scale as compressed-tensors stores it: a zero becomes the type's epsilon. Returns what was stored.
inline float store_scale(float scale, DType dtype, uint8_t* bytes) {
  const float stored = store_float(scale, dtype, bytes);
  return stored == 0 ? store_float(epsilon(dtype), dtype, bytes) : stored;
}

}  // namespace gearshift::quantize_detail
