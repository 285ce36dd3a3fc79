// Integer weights as compressed-tensors stores them: INT8 per row (format int-quantized, one code a byte) and INT4 in
// groups of 128 columns (format pack-quantized, eight codes a 32-bit word, lowest bits first, offset by 8).
//
//   symmetric    scale = amax / 7.5 (127.5 for 8 bits);   q = RNE(w / scale)
//   asymmetric   scale = (max - min) / 15 with min <= 0 <= max, zero = RNE(-8 - min / scale);   q = RNE(w / scale +
//   zero)
// Scales in the weight's type, a zero becomes that type's epsilon; q and zero saturate. Zero points are packed along N.
// Source: compressed-tensors quantization/utils/helpers.py (calculate_qparams), lifecycle/forward_helpers.py and
// compressors/pack_quantized.
#include <cmath>

#include "base/math.h"
#include "format/int4.h"
#include "quantize/recipe.h"
#include "quantize/widen.h"

namespace gearshift::quantize_detail {
namespace {

constexpr int64_t group = 128;
constexpr int64_t codes_per_word = 8;
int64_t groups(int64_t k) { return ceil_div(k, group); }

int32_t encode_value(float w, format::IntScale scale, int bits) {
  const float q = w / scale.scale + static_cast<float>(scale.zero_point);
  return format::clamp_int(format::round_to_int(q), format::int_min(bits), format::int_max(bits));
}

// ---- INT8, one scale a row ----

std::vector<OutTensor> tensors_int8(const ModuleFacts& facts) {
  return {{"weight", DType::i8, {facts.n, facts.k}}, {"weight_scale", facts.stored, {facts.n, 1}}};
}
void encode_int8(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  const int64_t k = panel.facts.k, size = bits(panel.facts.stored) / 8;
  for (int64_t r = 0; r < panel.rows; ++r) {
    const float* w = panel.w + r * k;
    uint8_t* at = out[1] + (panel.row + r) * size;
    const format::IntScale scale{store_scale(format::abs_max(w, k) / 127.5f, panel.facts.stored, at), 0};
    for (int64_t i = 0; i < k; ++i) {
      const int32_t q = encode_value(w[i], scale, 8);
      out[0][(panel.row + r) * k + i] = static_cast<uint8_t>(q);
      decoded[r * k + i] = format::int_decode_value(q, scale);
    }
  }
}

// ---- INT4, groups of 128 ----

std::vector<OutTensor> tensors_int4(const ModuleFacts& facts) {
  return {{"weight_packed", DType::i32, {facts.n, ceil_div(facts.k, codes_per_word)}},
          {"weight_scale", facts.stored, {facts.n, groups(facts.k)}},
          {"weight_shape", DType::i64, {2}}};
}
std::vector<OutTensor> tensors_int4_asymmetric(const ModuleFacts& facts) {
  auto result = tensors_int4(facts);
  const int64_t words = (facts.n + codes_per_word - 1) / codes_per_word;
  result.push_back({"weight_zero_point", DType::i32, {words, groups(facts.k)}});
  return result;
}
void scalars_int4(const ModuleFacts& facts, std::span<uint8_t* const> out) {
  const int64_t shape[2] = {facts.n, facts.k};
  std::memcpy(out[2], shape, sizeof shape);
}

// Sets the four bits of element `index` in a row of little-endian 32-bit words that starts as zeros.
void put_nibble(uint8_t* words, int64_t index, int32_t q) {
  const uint8_t code = format::int_to_offset(q, 4);
  words[index / 2] = static_cast<uint8_t>(words[index / 2] | (index % 2 == 0 ? code : code << 4));
}

format::IntScale symmetric_scale(const float* w, int64_t count, DType stored, uint8_t* at) {
  return {store_scale(format::abs_max(w, count) / 7.5f, stored, at), 0};
}
format::IntScale asymmetric_scale(const float* w, int64_t count, DType stored, uint8_t* at) {
  const format::Range range = format::min_max(w, count);
  const float low = std::min(range.min, 0.0f), high = std::max(range.max, 0.0f);
  if (low == high) return {store_scale(0, stored, at), 0};
  const float scale = store_scale(format::int_asymmetric_scale(range, 4).scale, stored, at);
  return {scale, format::clamp_int(format::round_to_int(-8.0f - low / scale), -8, 7)};
}

template <bool asymmetric>
void encode_int4(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  const int64_t k = panel.facts.k, size = bits(panel.facts.stored) / 8;
  const int64_t row_bytes = (k + codes_per_word - 1) / codes_per_word * 4;
  for (int64_t r = 0; r < panel.rows; ++r) {
    const int64_t row = panel.row + r;
    for (int64_t g = 0; g < groups(k); ++g) {
      const int64_t first = g * group, count = std::min(group, k - first);
      const float* w = panel.w + r * k + first;
      uint8_t* at = out[1] + (row * groups(k) + g) * size;
      const format::IntScale scale = asymmetric ? asymmetric_scale(w, count, panel.facts.stored, at)
                                                : symmetric_scale(w, count, panel.facts.stored, at);
      if (asymmetric) {  // word [row / 8, g] holds the zero points of eight rows
        put_nibble(out[3] + (row / codes_per_word * groups(k) + g) * 4, row % codes_per_word, scale.zero_point);
      }
      for (int64_t i = 0; i < count; ++i) {
        const int32_t q = encode_value(w[i], scale, 4);
        put_nibble(out[0] + row * row_bytes, first + i, q);
        decoded[r * k + first + i] = format::int_decode_value(q, scale);
      }
    }
  }
}

}  // namespace

const Recipe recipe_int8_channel{1, tensors_int8, no_scalars, encode_int8};
const Recipe recipe_int4_group128{1, tensors_int4, scalars_int4, encode_int4<false>};
const Recipe recipe_int4_group128_asymmetric{codes_per_word, tensors_int4_asymmetric, scalars_int4, encode_int4<true>};

}  // namespace gearshift::quantize_detail
