// MXFP4 and MXFP8 as compressed-tensors stores them (formats mxfp4-pack-quantized, mxfp8-quantized): 32 elements share
// a power of two, stored as its biased exponent in a byte; the exponent follows the "even" rule for both.
//
// Source: compressed-tensors quantization/utils/mxfp_utils.py and compressors/{mxfp4,mxfp8}.
#include "format/mx.h"
#include "quantize/recipe.h"

namespace gearshift::quantize_detail {
namespace {

constexpr int64_t block_columns = format::mx_block;

void encode(const Panel& panel, const format::MxElement& element, bool nibbles, std::span<uint8_t* const> out,
            float* decoded) {
  const int64_t k = panel.facts.k;
  for (int64_t r = 0; r < panel.rows; ++r) {
    for (int64_t b = 0; b < k / block_columns; ++b) {
      const float* w = panel.w + r * k + b * block_columns;
      float* back = decoded + r * k + b * block_columns;
      uint8_t codes[block_columns];
      const uint8_t scale = format::mx_encode(w, block_columns, format::MxRule::even, element, codes);
      out[1][(panel.row + r) * (k / block_columns) + b] = scale;
      for (int64_t i = 0; i < block_columns; ++i) {
        if (nibbles && w[i] == 0) codes[i] = 0;  // the library stores -0 as 0 in 4-bit formats
        back[i] = format::mx_decode_value(codes[i], scale, element);
      }
      const int64_t first = (panel.row + r) * k + b * block_columns;
      for (int64_t i = 0; i < block_columns; ++i) {
        if (!nibbles) {
          out[0][first + i] = codes[i];
        } else if (i % 2 == 1) {
          out[0][(first + i) / 2] = static_cast<uint8_t>(codes[i - 1] | codes[i] << 4);
        }
      }
    }
  }
}

std::vector<OutTensor> tensors_mxfp4(const ModuleFacts& facts) {
  return {{"weight_packed", DType::u8, {facts.n, facts.k / 2}},
          {"weight_scale", DType::u8, {facts.n, facts.k / block_columns}}};
}
void encode_mxfp4(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  encode(panel, format::mx_e2m1, true, out, decoded);
}
std::vector<OutTensor> tensors_mxfp8(const ModuleFacts& facts) {
  return {{"weight", DType::f8_e4m3, {facts.n, facts.k}},
          {"weight_scale", DType::u8, {facts.n, facts.k / block_columns}}};
}
void encode_mxfp8(const Panel& panel, std::span<uint8_t* const> out, float* decoded) {
  encode(panel, format::mx_e4m3, false, out, decoded);
}

}  // namespace

const Recipe recipe_mxfp4{1, tensors_mxfp4, no_scalars, encode_mxfp4};
const Recipe recipe_mxfp8{1, tensors_mxfp8, no_scalars, encode_mxfp8};

}  // namespace gearshift::quantize_detail
