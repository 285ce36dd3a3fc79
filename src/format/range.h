// The range of a block of values, and rounding into a range of integers: what every scale recipe starts and ends with.
//
// NaN is passed over when a range is measured: it meets its own encoding when the elements are encoded.
#pragma once

#include <cstdint>

namespace gearshift::format {

constexpr float magnitude(float x) { return x < 0 ? -x : x; }

// max |x[i]|, 0 for an empty block.
constexpr float abs_max(const float* x, int64_t count) {
  float result = 0;
  for (int64_t i = 0; i < count; ++i) result = magnitude(x[i]) > result ? magnitude(x[i]) : result;
  return result;
}

struct Range {
  float min = 0;
  float max = 0;
};

// Smallest and largest value; {0, 0} when there is none.
constexpr Range min_max(const float* x, int64_t count) {
  Range range;
  bool empty = true;
  for (int64_t i = 0; i < count; ++i) {
    if (x[i] != x[i]) continue;
    range.min = empty || x[i] < range.min ? x[i] : range.min;
    range.max = empty || x[i] > range.max ? x[i] : range.max;
    empty = false;
  }
  return range;
}

// Nearest integer, ties to even. REQUIRES: the default rounding mode.
constexpr float round_even(float x) {
  constexpr float all_integers = 0x1p23f;  // from here on a float has no fraction
  if (!(magnitude(x) < all_integers)) return x;
  return x < 0 ? (x - all_integers) + all_integers : (x + all_integers) - all_integers;
}

// round_even(x) clamped to what an int32 holds (the upper end is the largest float below 2^31); NaN gives 0.
constexpr int32_t round_to_int(float x) {
  if (x != x) return 0;
  const float rounded = round_even(x);
  if (rounded < -0x1p31f) return INT32_MIN;
  if (rounded >= 0x1p31f) return INT32_MAX;
  return static_cast<int32_t>(rounded);
}

constexpr int32_t clamp_int(int64_t value, int32_t low, int32_t high) {
  return value < low ? low : value > high ? high : static_cast<int32_t>(value);
}

}  // namespace gearshift::format
