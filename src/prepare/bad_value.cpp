#include "prepare/bad_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "format/bf16.h"
#include "format/e4m3.h"
#include "format/e5m2.h"
#include "format/e8m0.h"
#include "format/fp16.h"

namespace gearshift {

namespace {

static_assert(std::endian::native == std::endian::little, "stored numbers are read in place");

// Short enough that the search for the exact element after a hit costs nothing, long enough to fill vector registers.
constexpr int64_t chunk_elements = int64_t{1} << 15;

template <class Bits>
Bits load(const uint8_t* bytes, int64_t index) {
  Bits bits;
  std::memcpy(&bits, bytes + static_cast<size_t>(index) * sizeof(Bits), sizeof(Bits));
  return bits;
}

// A float format as masks of its bit pattern: which patterns are not finite, and where the sign is.
template <class Bits>
struct Masks {
  Bits mask = 0, value = 0;  // not finite: (bits & mask) == value
  Bits sign = 0;             // 0: there is no sign
};

template <class Bits, ValueRule rule>
bool breaks(Bits bits, Masks<Bits> masks) {
  bool bad = (bits & masks.mask) == masks.value;
  const Bits magnitude = static_cast<Bits>(bits & static_cast<Bits>(~masks.sign));
  if constexpr (rule != ValueRule::finite) bad |= (bits & masks.sign) != 0 && magnitude != 0;
  // The exponent-only format has no sign and no zero: its code 0 is a power of two.
  if constexpr (rule == ValueRule::positive) bad |= masks.sign != 0 && magnitude == 0;
  return bad;
}

template <class Bits, ValueRule rule>
int64_t first_bad(ByteView bytes, Masks<Bits> masks) {
  const int64_t count = static_cast<int64_t>(bytes.size() / sizeof(Bits));
  const int64_t chunks = (count + chunk_elements - 1) / chunk_elements;
  int64_t first = std::numeric_limits<int64_t>::max();
#pragma omp parallel for schedule(static) reduction(min : first) if (chunks > 8)
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t begin = chunk * chunk_elements, end = std::min(count, begin + chunk_elements);
    bool bad = false;
    for (int64_t i = begin; i < end; ++i) bad |= breaks<Bits, rule>(load<Bits>(bytes.data(), i), masks);
    if (!bad) continue;
    for (int64_t i = begin; i < end; ++i) {
      if (breaks<Bits, rule>(load<Bits>(bytes.data(), i), masks)) {
        first = std::min(first, i);
        break;
      }
    }
  }
  return first == std::numeric_limits<int64_t>::max() ? -1 : first;
}

template <class Bits>
int64_t first_bad(ByteView bytes, Masks<Bits> masks, ValueRule rule) {
  switch (rule) {
    case ValueRule::finite:
      return first_bad<Bits, ValueRule::finite>(bytes, masks);
    case ValueRule::not_negative:
      return first_bad<Bits, ValueRule::not_negative>(bytes, masks);
    case ValueRule::positive:
      return first_bad<Bits, ValueRule::positive>(bytes, masks);
  }
  return -1;
}

std::string spell(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-infinity" : "infinity";
  return fmt::format("{:g}", value);
}

}  // namespace

std::optional<BadValue> find_bad_value(ByteView bytes, DType dtype, ValueRule rule) {
  int64_t index = -1;
  switch (dtype) {
    case DType::f64:
      index =
          first_bad<uint64_t>(bytes, {0x7FF0'0000'0000'0000u, 0x7FF0'0000'0000'0000u, 0x8000'0000'0000'0000u}, rule);
      break;
    case DType::f32:
      index = first_bad<uint32_t>(bytes, {0x7F80'0000u, 0x7F80'0000u, 0x8000'0000u}, rule);
      break;
    case DType::bf16:
      index = first_bad<uint16_t>(bytes, {0x7F80, 0x7F80, 0x8000}, rule);
      break;
    case DType::f16:
      index = first_bad<uint16_t>(bytes, {0x7C00, 0x7C00, 0x8000}, rule);
      break;
    case DType::f8_e4m3:
      index = first_bad<uint8_t>(bytes, {0x7F, 0x7F, 0x80}, rule);
      break;
    case DType::f8_e5m2:
      index = first_bad<uint8_t>(bytes, {0x7C, 0x7C, 0x80}, rule);
      break;
    case DType::f8_e8m0:
      index = first_bad<uint8_t>(bytes, {0xFF, 0xFF, 0x00}, rule);
      break;
    default:
      break;
  }
  if (index < 0) return std::nullopt;
  return BadValue{index, spell(read_number(bytes, dtype, index))};
}

double read_number(ByteView bytes, DType dtype, int64_t index) {
  const uint8_t* data = bytes.data();
  switch (dtype) {
    case DType::f64:
      return std::bit_cast<double>(load<uint64_t>(data, index));
    case DType::f32:
      return std::bit_cast<float>(load<uint32_t>(data, index));
    case DType::bf16:
      return format::decode_bf16(load<uint16_t>(data, index));
    case DType::f16:
      return format::decode_fp16(load<uint16_t>(data, index));
    case DType::f8_e4m3:
      return format::decode_e4m3(load<uint8_t>(data, index));
    case DType::f8_e5m2:
      return format::decode_e5m2(load<uint8_t>(data, index));
    case DType::f8_e8m0:
      return format::decode_e8m0(load<uint8_t>(data, index));
    case DType::i32:
      return static_cast<int32_t>(load<uint32_t>(data, index));
    case DType::u32:
      return load<uint32_t>(data, index);
    case DType::i16:
      return static_cast<int16_t>(load<uint16_t>(data, index));
    case DType::u16:
      return load<uint16_t>(data, index);
    case DType::i8:
      return static_cast<int8_t>(load<uint8_t>(data, index));
    case DType::u8:
      return load<uint8_t>(data, index);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace gearshift
