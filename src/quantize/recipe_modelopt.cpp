// NVFP4 and FP8 (one scale per tensor) as ModelOpt stores them. Scalars have no dimension; parts that serving engines
// fuse share them, as ModelOpt makes them do before it exports.
//
//   NVFP4  scale_2 = amax / 2688                              stored fp32; multiplies on reconstruction
//          scale   = e4m3(amax16 / (6 * scale_2))             at least 2^-9; a zero block gets 1.0
//          code    = e2m1(w / (scale * scale_2))
//   FP8    scale   = amax / 448,  code = e4m3_sat(w / scale)
// Source: NVIDIA/Model-Optimizer modelopt/torch/quantization/qtensor/{nvfp4_tensor,fp8_tensor}.py and
// modelopt/torch/export/quant_utils.py (preprocess_linear_fusion, to_quantized_weight).
#include "format/fp8.h"
#include "format/nvfp4.h"
#include "quantize/recipe.h"
#include "quantize/widen.h"

namespace gearshift::quantize_detail {
namespace {

std::vector<OutTensor> modelopt_nvfp4_a16_tensors(const ModuleFacts& facts) {
  return {{"weight", DType::u8, {facts.n, facts.k / 2}},
          {"weight_scale", DType::f8_e4m3, {facts.n, facts.k / format::nvfp4_block}},
          {"weight_scale_2", DType::f32, {}}};
}
std::vector<OutTensor> modelopt_nvfp4_tensors(const ModuleFacts& facts) {
  auto result = modelopt_nvfp4_a16_tensors(facts);
  result.push_back({"input_scale", DType::f32, {}});
  return result;
}
void modelopt_nvfp4_a16_scalars(const ModuleFacts& facts, std::span<uint8_t* const> out) {
  store_float(format::nvfp4_scale_2(facts.shared_amax), DType::f32, out[2]);
}
void modelopt_nvfp4_scalars(const ModuleFacts& facts, std::span<uint8_t* const> out) {
  modelopt_nvfp4_a16_scalars(facts, out);
  store_float(format::nvfp4_scale_2(facts.input_amax), DType::f32, out[3]);
}

void modelopt_nvfp4_encode(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  constexpr int64_t columns = format::nvfp4_block;
  const int64_t k = panel.facts.k;
  const float scale_2 = format::nvfp4_scale_2(panel.facts.shared_amax);
  for (int64_t r = 0; r < panel.rows; ++r) {
    for (int64_t b = 0; b < k / columns; ++b) {
      const float* w = panel.w + r * k + b * columns;
      uint8_t* packed = out[0] + ((panel.row + r) * k + b * columns) / 2;
      float* back = decoded + r * k + b * columns;
      uint8_t codes[columns];
      const uint8_t scale = format::nvfp4_encode_modelopt(w, columns, scale_2, codes);
      out[1][(panel.row + r) * (k / columns) + b] = scale;
      for (int64_t i = 0; i < columns; ++i) {
        if (w[i] == 0) codes[i] = 0;  // -0 is stored as 0
        back[i] = format::nvfp4_decode_value_modelopt(codes[i], scale, scale_2);
        if (i % 2 == 1) packed[i / 2] = static_cast<uint8_t>(codes[i - 1] | codes[i] << 4);
      }
    }
  }
}

std::vector<OutTensor> modelopt_fp8_tensors(const ModuleFacts& facts) {
  return {{"weight", DType::f8_e4m3, {facts.n, facts.k}},
          {"weight_scale", DType::f32, {}},
          {"input_scale", DType::f32, {}}};
}
void modelopt_fp8_scalars(const ModuleFacts& facts, std::span<uint8_t* const> out) {
  store_float(format::fp8_scale(facts.shared_amax), DType::f32, out[1]);
  store_float(format::fp8_scale(facts.input_amax), DType::f32, out[2]);
}
void modelopt_fp8_encode(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  const int64_t count = panel.rows * panel.facts.k;
  const float scale = format::fp8_scale(panel.facts.shared_amax);
  uint8_t* codes = out[0] + panel.row * panel.facts.k;
  format::fp8_encode(panel.w, count, scale, codes);
  for (int64_t i = 0; i < count; ++i) decoded[i] = format::fp8_decode_value(codes[i], scale);
}

}  // namespace

const Recipe recipe_modelopt_nvfp4{1, modelopt_nvfp4_tensors, modelopt_nvfp4_scalars, modelopt_nvfp4_encode};
const Recipe recipe_modelopt_nvfp4_a16{1, modelopt_nvfp4_a16_tensors, modelopt_nvfp4_a16_scalars,
                                       modelopt_nvfp4_encode};
const Recipe recipe_modelopt_fp8{1, modelopt_fp8_tensors, modelopt_fp8_scalars, modelopt_fp8_encode};

}  // namespace gearshift::quantize_detail
