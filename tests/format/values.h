// Names for the special values that tests of formats use.
#pragma once

#include <limits>

namespace gearshift::format {

inline constexpr float nan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace gearshift::format
