#include "measure/poison.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/activations.h"

namespace gearshift {

// All bits set is a NaN in every float type. The finite pattern reads as 1.5e16 in bf16 and fp32, and as 203 in fp16.
uint8_t byte_of(Poison poison) {
  switch (poison) {
    case Poison::nan:
      return 0xFF;
    case Poison::large:
      return 0x5A;
    case Poison::zero:
      return 0;
  }
  return 0;
}

std::string find_poison(const ConstMatrix& y) {
  const int64_t size = element_bytes(y.dtype);
  for (int64_t row = 0; row < y.rows; ++row) {
    const auto* bytes = static_cast<const uint8_t*>(y.data) + row * y.stride * size;
    for (int64_t column = 0; column < y.cols; ++column) {
      const float value = load_element(bytes, y.dtype, column);
      if (value == value) continue;
      const uint8_t* element = bytes + column * size;
      const bool untouched =
          std::all_of(element, element + size, [](uint8_t byte) { return byte == byte_of(Poison::nan); });
      return fmt::format("row {}, column {}: {}", row, column, untouched ? "not written" : "NaN");
    }
  }
  return "";
}

}  // namespace gearshift
