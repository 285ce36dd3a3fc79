#include <array>

#include "layer/scheme/scheme.h"

namespace gearshift {

extern const SchemeEntry compressed_tensors_scheme;
extern const SchemeEntry modelopt_scheme;
extern const SchemeEntry unquantized_scheme;

std::span<const SchemeEntry* const> all_schemes() {
  static constexpr std::array<const SchemeEntry*, 3> kSchemes = {
      &compressed_tensors_scheme, &modelopt_scheme,
      &unquantized_scheme,  // last: takes what has no dictionary
  };
  return kSchemes;
}

}  // namespace gearshift
