// From the number of rows of a tile to the code compiled for that number.
#pragma once

#include <cstdint>

namespace gearshift {

// Calls f.operator()<w>() for the w in 1..Most that is asked for.
template <int Most, class F>
inline void with_rows(int64_t w, const F& f) {
  if constexpr (Most > 1) {
    if (w < Most) return with_rows<Most - 1>(w, f);
  }
  f.template operator()<Most>();
}

}  // namespace gearshift
