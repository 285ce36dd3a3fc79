// Finds the first stored value that no healthy checkpoint contains.
#pragma once

#include <optional>

#include "gearshift/base.h"

namespace gearshift {

// What a tensor's values may be, besides finite.
enum class ValueRule : uint8_t {
  finite,        // any number
  not_negative,  // block and channel scales: zero is legal (a block of zeros)
  positive       // tensor-wide scales
};

struct BadValue {
  int64_t index = 0;  // element
  std::string found;  // "NaN", "infinity", "-0.5", "0"
};

// The first element of `bytes` (little-endian `dtype`, any alignment) that breaks `rule`. dtype: f64, f32, f16, bf16,
// f8_e4m3, f8_e5m2, f8_e8m0; integers and sub-byte codes hold no bad values. One pass over the bytes, spread over the
// OpenMP threads.
std::optional<BadValue> find_bad_value(ByteView bytes, DType dtype, ValueRule rule);

// One element as a number. REQUIRES: index inside; dtype one of the above or an integer of up to 32 bits.
double read_number(ByteView bytes, DType dtype, int64_t index);

}  // namespace gearshift
