// FP8 e4m3 as compressed-tensors stores it (format float-quantized): one scale per tensor, row or 128 x 128 block.
//
//   scale = amax / 448 in the weight's type; a zero becomes that type's epsilon
//   code  = e4m3_sat(w / scale)
// Source: compressed-tensors quantization/utils/helpers.py (calculate_qparams) and compressors/naive_quantized.
#include "base/math.h"
#include "format/fp8.h"
#include "quantize/recipe.h"
#include "quantize/widen.h"

namespace gearshift::quantize_detail {
namespace {

constexpr int64_t block = 128;
int64_t blocks(int64_t n) { return ceil_div(n, block); }

float store_amax(float amax, DType dtype, uint8_t* out) { return store_scale(amax / format::e4m3_max, dtype, out); }

void encode_span(const float* w, int64_t count, float scale, uint8_t* codes, float* decoded) {
  format::fp8_encode(w, count, scale, codes);
  for (int64_t i = 0; i < count; ++i) decoded[i] = format::e4m3_table[codes[i]] * scale;
}

// ---- tensor: static activations, one stored scale each ----

std::vector<OutTensor> tensors_tensor(const ModuleFacts& facts) {
  return {{"weight", DType::f8_e4m3, {facts.n, facts.k}},
          {"weight_scale", facts.stored, {1}},
          {"input_scale", facts.stored, {1}}};
}
void scalars_tensor(const ModuleFacts& facts, std::span<uint8_t* const> out) {
  store_amax(facts.amax, facts.stored, out[1]);
  store_amax(facts.input_amax, facts.stored, out[2]);
}
void encode_tensor(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  const int64_t k = panel.facts.k;
  uint8_t bytes[4];
  const float scale = store_amax(panel.facts.amax, panel.facts.stored, bytes);
  encode_span(panel.w, panel.rows * k, scale, out[0] + panel.row * k, decoded);
}

// ---- channel ----

std::vector<OutTensor> tensors_channel(const ModuleFacts& facts) {
  return {{"weight", DType::f8_e4m3, {facts.n, facts.k}}, {"weight_scale", facts.stored, {facts.n, 1}}};
}
void encode_channel(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  const int64_t k = panel.facts.k, size = bits(panel.facts.stored) / 8;
  for (int64_t r = 0; r < panel.rows; ++r) {
    const float* w = panel.w + r * k;
    const float scale = store_amax(format::abs_max(w, k), panel.facts.stored, out[1] + (panel.row + r) * size);
    encode_span(w, k, scale, out[0] + (panel.row + r) * k, decoded + r * k);
  }
}

// ---- block: edge blocks may be partial, the weight is stored unpadded ----

std::vector<OutTensor> tensors_block(const ModuleFacts& facts) {
  return {{"weight", DType::f8_e4m3, {facts.n, facts.k}},
          {"weight_scale", facts.stored, {blocks(facts.n), blocks(facts.k)}}};
}
void encode_block(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  const int64_t k = panel.facts.k, size = bits(panel.facts.stored) / 8;
  for (int64_t b = 0; b < blocks(k); ++b) {
    const int64_t first = b * block, count = std::min(block, k - first);
    float amax = 0;
    for (int64_t r = 0; r < panel.rows; ++r) amax = std::max(amax, format::abs_max(panel.w + r * k + first, count));
    const float scale = store_amax(amax, panel.facts.stored, out[1] + (panel.row / block * blocks(k) + b) * size);
    for (int64_t r = 0; r < panel.rows; ++r) {
      encode_span(panel.w + r * k + first, count, scale, out[0] + (panel.row + r) * k + first, decoded + r * k + first);
    }
  }
}

}  // namespace

const Recipe recipe_fp8_tensor{1, tensors_tensor, scalars_tensor, encode_tensor};
const Recipe recipe_fp8_channel{1, tensors_channel, no_scalars, encode_channel};
const Recipe recipe_fp8_block{block, tensors_block, no_scalars, encode_block};

}  // namespace gearshift::quantize_detail
