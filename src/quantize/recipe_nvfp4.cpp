// NVFP4 as compressed-tensors stores it (format nvfp4-pack-quantized).
//
//   global = 448 * 6 / amax of the fused module          stored fp32; divides on reconstruction
//   scale  = e4m3(global * (amax16 / 6))                 0 becomes 0.125, so that a reader may divide by it
//   code   = e2m1(w / (scale / global))
// Source: compressed-tensors quantization/utils/helpers.py (calculate_qparams, generate_gparam) and compressors/nvfp4.
#include <cmath>
#include <limits>

#include "format/nvfp4.h"
#include "quantize/recipe.h"
#include "quantize/widen.h"

namespace gearshift::quantize_detail {
namespace {

constexpr int64_t group_columns = format::nvfp4_block;

// 1 where the quotient is no finite number (a module of zeros).
float global_scale(float amax) {
  const float global = format::nvfp4_range / std::max(amax, std::numeric_limits<float>::min());
  return std::isfinite(global) ? global : 1.0f;
}

std::vector<OutTensor> tensors_a16(const ModuleFacts& facts) {
  return {{"weight_packed", DType::u8, {facts.n, facts.k / 2}},
          {"weight_scale", DType::f8_e4m3, {facts.n, facts.k / group_columns}},
          {"weight_global_scale", DType::f32, {1}}};
}
std::vector<OutTensor> tensors(const ModuleFacts& facts) {
  auto result = tensors_a16(facts);
  result.push_back({"input_global_scale", DType::f32, {1}});
  return result;
}

void scalars_a16(const ModuleFacts& facts, std::span<uint8_t* const> out) {
  store_float(global_scale(facts.shared_amax), DType::f32, out[2]);
}
void scalars(const ModuleFacts& facts, std::span<uint8_t* const> out) {
  scalars_a16(facts, out);
  store_float(global_scale(facts.input_amax), DType::f32, out[3]);
}

void encode(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  constexpr uint8_t eighth = format::encode_e4m3(0.125f);
  const int64_t k = panel.facts.k;
  const float global = global_scale(panel.facts.shared_amax);
  for (int64_t r = 0; r < panel.rows; ++r) {
    uint8_t* codes = out[0] + (panel.row + r) * (k / 2);
    uint8_t* scales = out[1] + (panel.row + r) * (k / group_columns);
    for (int64_t b = 0; b < k / group_columns; ++b) {
      const float* w = panel.w + r * k + b * group_columns;
      uint8_t scale = format::encode_e4m3(format::abs_max(w, group_columns) / format::e2m1_max * global);
      if (scale == 0) scale = eighth;
      scales[b] = scale;
      const float step = format::e4m3_table[scale] / global;
      for (int64_t i = 0; i < group_columns; i += 2) {
        // -0 is stored as 0; a negative number that rounds to zero keeps its sign.
        const uint8_t low = w[i] == 0 ? uint8_t{0} : format::encode_e2m1(w[i] / step);
        const uint8_t high = w[i + 1] == 0 ? uint8_t{0} : format::encode_e2m1(w[i + 1] / step);
        codes[(b * group_columns + i) / 2] = static_cast<uint8_t>(low | high << 4);
        float* back = decoded + r * k + b * group_columns + i;
        back[0] = format::nvfp4_decode_value(low, scale, global);
        back[1] = format::nvfp4_decode_value(high, scale, global);
      }
    }
  }
}

}  // namespace

const Recipe recipe_nvfp4{1, tensors, scalars, encode};
const Recipe recipe_nvfp4_a16{1, tensors_a16, scalars_a16, encode};

}  // namespace gearshift::quantize_detail
