// Small integer arithmetic for shapes.
#pragma once

#include <cstdint>

namespace gearshift {

// a / b rounded up; a >= 0, b > 0. No intermediate value exceeds a.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

}  // namespace gearshift
