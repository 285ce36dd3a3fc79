// What memory holds before a kernel runs, and finding it afterwards.
#pragma once

#include "gearshift/base.h"

namespace gearshift {

// Stale data gives itself away only if it differs from what the kernel would write: a NaN spreads, a large number
// survives comparisons that NaN slips through, zero shows what was added to instead of written.
enum class Poison : uint8_t { nan, large, zero };

// The byte that memory is filled with.
uint8_t byte_of(Poison poison);

// The first element of y that is a NaN, and whether it is the poison itself: "row 3, column 7: not written"; "" when
// there is none. REQUIRES: y was filled with Poison::nan.
std::string find_poison(const ConstMatrix& y);

}  // namespace gearshift
