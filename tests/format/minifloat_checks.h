// Everything an element format must do, checked against an oracle written from the definition: a sorted list of values
// in double, and the nearest of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "format/minifloat.h"
#include "random.h"

namespace gearshift::format {

// The table row as the specification gives it, typed again by each test.
struct FormatRow {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  double max;
  double min_normal;
  double min_subnormal;
  int nan_codes;        // of both signs
  bool has_infinity;    // and the encoder uses it
  int distinct_values;  // finite ones, with +0 and -0 as one
};

class Oracle {
 public:
  explicit Oracle(const FormatRow& row) : row_(row) {
    for (uint32_t magnitude = 0; value(magnitude) <= row.max && magnitude < sign_bit(); ++magnitude) {
      values_.push_back(value(magnitude));
    }
  }
  uint32_t sign_bit() const { return 1u << (row_.exponent_bits + row_.mantissa_bits); }
  uint32_t code_count() const { return 2 * sign_bit(); }
  // Finite values >= 0; the index is the code.
  const std::vector<double>& values() const { return values_; }

  // Of a finite x: nearest, ties to the even code; past the end saturated, or infinity from half a step past the end.
  uint32_t encode(float x, bool saturate) const {
    const double target = std::fabs(static_cast<double>(x));
    const uint32_t sign = std::signbit(x) ? sign_bit() : 0;
    const auto last = static_cast<uint32_t>(values_.size() - 1);
    if (target >= values_.back()) {
      const double step = values_[last] - values_[last - 1];
      return sign | (!saturate && target >= values_.back() + step / 2 ? last + 1 : last);
    }
    const auto above =
        static_cast<uint32_t>(std::upper_bound(values_.begin(), values_.end(), target) - values_.begin());
    const double to_above = values_[above] - target;
    const double to_below = target - values_[above - 1];
    if (to_above != to_below) return sign | (to_above < to_below ? above : above - 1);
    return sign | (above % 2 == 0 ? above : above - 1);
  }

 private:
  double value(uint32_t magnitude) const {
    const int exponent = static_cast<int>(magnitude >> row_.mantissa_bits);
    const double fraction = std::ldexp(magnitude & ((1u << row_.mantissa_bits) - 1), -row_.mantissa_bits);
    return exponent == 0 ? std::ldexp(fraction, 1 - row_.bias) : std::ldexp(1 + fraction, exponent - row_.bias);
  }

  FormatRow row_;
  std::vector<double> values_;
};

template <class Decode, class Encode>
void check_format(const FormatRow& row, Decode decode, Encode encode) {
  using Code = decltype(encode(0.0f));
  const Oracle oracle(row);
  const std::vector<double>& values = oracle.values();
  const bool saturate = !row.has_infinity;
  const float infinity = std::numeric_limits<float>::infinity();

  // The row agrees with itself.
  ASSERT_EQ(values.back(), row.max);
  ASSERT_EQ(values[1], row.min_subnormal);
  ASSERT_EQ(values[1u << row.mantissa_bits], row.min_normal);

  // Every code: its value, and back; NaN stays NaN with its sign; the values rise with the codes.
  std::set<double> distinct;
  int nan_codes = 0;
  for (uint32_t code = 0; code < oracle.code_count(); ++code) {
    const uint32_t magnitude = code & (oracle.sign_bit() - 1);
    const bool negative = code >= oracle.sign_bit();
    const float value = decode(static_cast<Code>(code));
    if (std::isnan(value)) {
      ++nan_codes;
      ASSERT_GE(magnitude, values.size()) << code;
      const Code again = encode(value);
      ASSERT_TRUE(std::isnan(decode(again))) << code;
      ASSERT_EQ(again >= oracle.sign_bit(), negative) << code;
      continue;
    }
    ASSERT_EQ(std::signbit(value), negative) << code;
    if (std::isinf(value)) {
      ASSERT_EQ(magnitude, values.size()) << code;
      ASSERT_EQ(encode(value), saturate ? code - 1 : code);
      continue;
    }
    ASSERT_LT(magnitude, values.size()) << code;
    ASSERT_EQ(std::fabs(value), values[magnitude]) << code;
    ASSERT_EQ(encode(value), code);
    distinct.insert(value);
  }
  EXPECT_EQ(nan_codes, row.nan_codes);
  EXPECT_EQ(static_cast<int>(distinct.size()), row.distinct_values);
  EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));

  // Every midpoint of neighbours and the floats beside it, and beside every value, in both signs. One step past the
  // largest value stands for where the next one would be.
  for (size_t i = 0; i < values.size(); ++i) {
    const double next = i + 1 < values.size() ? values[i + 1] : 2 * values[i] - values[i - 1];
    const auto value = static_cast<float>(values[i]);
    const auto middle = static_cast<float>((values[i] + next) / 2);
    ASSERT_EQ(middle, (values[i] + next) / 2) << "a midpoint must be a float";
    for (const float x : {value, middle}) {
      for (const float beside : {std::nextafter(x, -infinity), x, std::nextafter(x, infinity)}) {
        ASSERT_EQ(encode(beside), oracle.encode(beside, saturate)) << std::hexfloat << beside;
        ASSERT_EQ(encode(-beside), oracle.encode(-beside, saturate)) << std::hexfloat << -beside;
      }
    }
  }

  // The far ends: infinities, the largest and the smallest floats.
  const uint32_t end = static_cast<uint32_t>(values.size()) - (saturate ? 1 : 0);
  const float largest = std::numeric_limits<float>::max();
  const float smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(encode(infinity), end);
  EXPECT_EQ(encode(-infinity), end | oracle.sign_bit());
  EXPECT_EQ(encode(largest), end);
  EXPECT_EQ(encode(-largest), end | oracle.sign_bit());
  EXPECT_EQ(encode(smallest), 0u);
  EXPECT_EQ(encode(-smallest), oracle.sign_bit());

  // Floats of every exponent, and a walk through all floats in order: nearest, and never falling.
  Random random;
  for (int i = 0; i < 100'000; ++i) {
    const float x = random.any_finite();
    ASSERT_EQ(encode(x), oracle.encode(x, saturate)) << std::hexfloat << x;
  }
  uint32_t before = 0;
  for (uint32_t bits = static_cast<uint32_t>(random.between(0, 9972)); bits <= 0x7F800000u; bits += 9973) {
    const auto x = std::bit_cast<float>(bits);
    const uint32_t code = encode(x);
    ASSERT_GE(code, before) << std::hexfloat << x;
    ASSERT_EQ(encode(-x), code | oracle.sign_bit()) << std::hexfloat << x;
    before = code;
  }
}

}  // namespace gearshift::format
