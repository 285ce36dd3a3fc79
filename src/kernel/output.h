// Results leave a kernel through one rounding: float64 to the output type, to nearest even.
#pragma once

#include <cstring>

#include "format/bf16.h"
#include "format/fp16.h"
#include "gearshift/kernel.h"

namespace gearshift {

// To fp32 with the last bit forced to odd when anything was lost, so that rounding to 16 bits afterwards rounds once.
inline float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &nearest, 4);
  const double back = nearest;
  if (back == value || !(value - value == 0) || !(nearest - nearest == 0)) return nearest;
  // Truncate towards zero, then mark.
  const bool away = (back > value) == (value > 0);
  bits = (away ? bits - 1 : bits) | 1;
  float odd;
  std::memcpy(&odd, &bits, 4);
  return odd;
}

inline void store(const Matrix& y, int64_t row, int64_t column, double value) {
  const int64_t index = row * y.stride + column;
  auto* base = static_cast<uint8_t*>(y.data);
  if (y.dtype == DType::f32) {
    const auto rounded = static_cast<float>(value);
    std::memcpy(base + index * 4, &rounded, 4);
    return;
  }
  const float odd = round_to_odd(value);
  const uint16_t code = y.dtype == DType::f16 ? format::encode_fp16(odd) : format::encode_bf16(odd);
  std::memcpy(base + index * 2, &code, 2);
}

// Value of a bias element; 0 where the part has none.
inline double bias_value(const PartWeights& part, int64_t r) {
  if (part.bias.empty()) return 0;
  const uint8_t* base = part.bias.data();
  if (part.bias_dtype == DType::f32) {
    float value;
    std::memcpy(&value, base + r * 4, 4);
    return value;
  }
  uint16_t code;
  std::memcpy(&code, base + r * 2, 2);
  return part.bias_dtype == DType::f16 ? format::decode_fp16(code) : format::decode_bf16(code);
}

// What column k of x is multiplied by first; 1 where the part has no such vector.
inline float pre_scale_value(const PartWeights& part, int64_t k) {
  if (part.pre_scale.empty()) return 1;
  float value;
  if (part.pre_scale_dtype == DType::f32) {
    std::memcpy(&value, part.pre_scale.data() + k * 4, 4);
    return value;
  }
  uint16_t code;
  std::memcpy(&code, part.pre_scale.data() + k * 2, 2);
  return part.pre_scale_dtype == DType::f16 ? format::decode_fp16(code) : format::decode_bf16(code);
}

// Cuts a workspace into arrays that start on cache lines. With a null base it only counts.
class Carver {
 public:
  explicit Carver(uint8_t* base) : base_(base) {}
  template <class T>
  T* take(int64_t count) {
    T* at = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return at;
  }
  // The same on a coarser boundary, wherever the base stands: takes `alignment` bytes more.
  template <class T>
  T* take_aligned(int64_t count, int64_t alignment) {
    uint8_t* at = take<uint8_t>(count * static_cast<int64_t>(sizeof(T)) + alignment);
    const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(at) % static_cast<uintptr_t>(alignment));
    return reinterpret_cast<T*>(past == 0 ? at : at + (alignment - past));
  }
  int64_t used() const { return used_; }

 private:
  uint8_t* base_;
  int64_t used_ = 0;
};

}  // namespace gearshift
