#include "kernel/layout/code_rows.h"

#include <algorithm>
#include <cstring>

#include "base/math.h"
#include "format/bf16.h"
#include "format/e8m0.h"
#include "format/fp16.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

constexpr int64_t kBlock = 128;  // of block scales that cuBLASLt reads

bool has_integer_codes(const LayerSpec& layer) {
  return layer.scheme.quantized && layer.scheme.weight.format >= Format::int2;
}
bool has_floats(const LayerSpec& layer) {
  return !layer.scheme.quantized || layer.scheme.weight.format == Format::float_;
}

// Bytes of a stored float weight; parts of other types than the first are converted to its.
DType dtype_of_floats(const LayerSpec& layer) {
  for (const Module& module : layer.modules) {
    for (const StoredTensor& tensor : module.tensors) {
      if (tensor.role == TensorRole::weight) return tensor.dtype;
    }
  }
  return DType::bf16;
}

bool has_groups(const LayerSpec& layer) {
  const Grouping::Kind kind = layer.scheme.weight.grouping.kind;
  return layer.scheme.quantized && (kind == Grouping::Kind::group || kind == Grouping::Kind::block);
}

void put_float_code(uint8_t* at, DType dtype, float value) {
  if (dtype == DType::f32) {
    std::memcpy(at, &value, 4);
    return;
  }
  const uint16_t code = dtype == DType::f16 ? format::encode_fp16(value) : format::encode_bf16(value);
  std::memcpy(at, &code, 2);
}

// Columns of one row. `values`: K floats.
void pack_code_row(const LayerWeights& weights, const StoredWeights& stored, const CodeRows& rows, int64_t row,
                   float* values, uint8_t* out) {
  const LayerSpec& layer = *weights.spec;
  std::memset(out, 0, static_cast<size_t>(rows.row_bytes));
  if (has_floats(layer)) {
    const DType dtype = dtype_of_floats(layer);
    stored.codes(row, 0, layer.k, values);
    for (int64_t k = 0; k < layer.k; ++k) put_float_code(out + k * rows.element_bytes, dtype, values[k]);
    return;
  }
  if (!has_integer_codes(layer)) {
    for (int64_t k = 0; k < layer.k; ++k) out[k] = static_cast<uint8_t>(stored.code_bits(row, k));
    return;
  }
  stored.codes(row, 0, layer.k, values);
  const bool shifted = rows.zeros >= 0;
  const int64_t half =
      layer.scheme.weight.format >= Format::uint2 ? int64_t{1} << (bits(layer.scheme.weight.format) - 1) : 0;
  for (int64_t k = 0; k < layer.k; ++k) {
    const int64_t zero = shifted ? stored.zero_point(row, stored.group_of(k)) - half : 0;
    out[k] = static_cast<uint8_t>(static_cast<int64_t>(values[k]) + zero);
  }
}

// Scales, factor and column of row r of a part, which is row `row` of the layer.
void pack_scales(const LayerWeights& weights, size_t p, const CodeRows& rows, int64_t r, int64_t row, uint8_t* out) {
  if (rows.factors < 0) return;
  const StoredWeights stored(weights, p);
  const auto factor = static_cast<float>(stored.factor() * (rows.scales < 0 ? stored.scale(r, 0) : 1));
  const auto column = static_cast<int32_t>(output_column(weights, p, r));
  std::memcpy(out + rows.factors + row * 4, &factor, 4);
  std::memcpy(out + rows.columns + row * 4, &column, 4);
  if (rows.scales < 0) return;
  uint8_t* scales = out + rows.scales + row * rows.scale_row_bytes;
  for (int64_t g = 0; g < rows.groups; ++g) {
    if (rows.exponents) {
      scales[g] = weights.parts[p].scale[static_cast<size_t>(stored.scale_index(r, g))];
      continue;
    }
    const float scale = stored.scale(r, g);
    std::memcpy(scales + g * 4, &scale, 4);
    if (rows.block_scales < 0 || r % kBlock != 0) continue;
    const int64_t block = first_block_of(*weights.spec, p) + r / kBlock;
    std::memcpy(out + rows.block_scales + (block * rows.block_row_floats + g) * 4, &scale, 4);
  }
}

void pack_code_rows(const LayerWeights& weights, uint8_t* out, [[maybe_unused]] int threads) {
  const LayerSpec& layer = *weights.spec;
  const CodeRows rows = code_rows_of(layer);
  // What lies between sections belongs to the packed bytes, too.
  std::memset(out + layer.n * rows.row_bytes, 0, static_cast<size_t>(rows.bytes - layer.n * rows.row_bytes));
  const int64_t half =
      layer.scheme.weight.format >= Format::uint2 ? int64_t{1} << (bits(layer.scheme.weight.format) - 1) : 0;
  int64_t first = 0;
  for (size_t p = 0; p < weights.parts.size(); ++p) {
    const PartWeights& part = weights.parts[p];
    const StoredWeights stored(weights, p);
#pragma omp parallel num_threads(threads)
    {
      std::vector<float> values(static_cast<size_t>(layer.k));
#pragma omp for schedule(static)
      for (int64_t r = 0; r < part.n; ++r) {
        const int64_t row = first + r;
        pack_code_row(weights, stored, rows, r, values.data(), out + row * rows.row_bytes);
        pack_scales(weights, p, rows, r, row, out);
        for (int64_t g = 0; g < rows.groups; ++g) {
          const auto zero = static_cast<int16_t>(rows.zeros >= 0 ? stored.zero_point(r, g) - half : 0);
          if (rows.zeros >= 0) std::memcpy(out + rows.zeros + (row * rows.groups + g) * 2, &zero, 2);
        }
        const auto bias = static_cast<float>(bias_value(part, r));
        if (rows.bias >= 0) std::memcpy(out + rows.bias + row * 4, &bias, 4);
      }
    }
    for (int64_t k = 0; k < layer.k; ++k) {
      const auto group = static_cast<int32_t>(stored.group_of(k));
      if (rows.index >= 0) std::memcpy(out + rows.index + (static_cast<int64_t>(p) * layer.k + k) * 4, &group, 4);
    }
    for (int64_t k = 0; k < layer.k; ++k) {
      const float value = pre_scale_value(part, k);
      if (rows.pre_scale >= 0)
        std::memcpy(out + rows.pre_scale + (static_cast<int64_t>(p) * layer.k + k) * 4, &value, 4);
    }
    first += part.n;
  }
}

void unpack_code_rows(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales) {
  const CodeRows rows = code_rows_of(layer);
  const auto row_bytes = static_cast<size_t>(layer.k * rows.element_bytes);
  for (int64_t r = 0; r < layer.n; ++r) {
    std::memcpy(codes + static_cast<size_t>(r) * row_bytes, packed + r * rows.row_bytes, row_bytes);
  }
  if (rows.scales < 0 && rows.factors >= 0)
    std::memcpy(scales, packed + rows.factors, static_cast<size_t>(layer.n * 4));
  if (rows.scales < 0) return;
  for (int64_t r = 0; r < layer.n; ++r) {
    const uint8_t* from = packed + rows.scales + r * rows.scale_row_bytes;
    for (int64_t g = 0; g < rows.groups; ++g, scales += 4) {
      const float power = format::decode_e8m0(from[g]);
      std::memcpy(scales, rows.exponents ? reinterpret_cast<const uint8_t*>(&power) : from + g * 4, 4);
    }
  }
}

}  // namespace

int64_t first_block_of(const LayerSpec& layer, size_t part) {
  int64_t blocks = 0;
  for (size_t p = 0; p < part; ++p) blocks += ceil_div(part_rows(layer, p), kBlock);
  return blocks;
}

CodeRows code_rows_of(const LayerSpec& layer) {
  CodeRows rows;
  rows.element_bytes = has_floats(layer) ? bits(dtype_of_floats(layer)) / 8 : 1;
  rows.row_bytes = ceil_div(layer.k * rows.element_bytes, 16) * 16;
  rows.groups = has_groups(layer) ? ceil_div(layer.k, layer.scheme.weight.grouping.cols) : 1;
  int64_t at = ceil_div(layer.n * rows.row_bytes, 64) * 64;
  const auto take = [&at](int64_t bytes) { return std::exchange(at, at + ceil_div(bytes, 64) * 64); };
  const auto parts = static_cast<int64_t>(part_count(layer));
  const WeightScheme& weight = layer.scheme.weight;
  if (layer.scheme.quantized) {
    rows.factors = take(layer.n * 4);
    rows.columns = take(layer.n * 4);
  }
  if (has_groups(layer)) {
    rows.exponents = weight.scale == DType::f8_e8m0 && weight.grouping.kind == Grouping::Kind::group;
    rows.scale_row_bytes = rows.exponents ? ceil_div(rows.groups, 4) * 4 : rows.groups * 4;
    rows.scales = take(layer.n * rows.scale_row_bytes);
    if (weight.grouping.kind == Grouping::Kind::block && weight.grouping.rows == kBlock &&
        weight.grouping.cols == kBlock) {
      rows.block_row_floats = ceil_div(rows.groups, 4) * 4;
      rows.block_scales = take(first_block_of(layer, part_count(layer)) * rows.block_row_floats * 4);
    }
  }
  if (has_integer_codes(layer) && !weight.symmetric) rows.zeros = take(layer.n * rows.groups * 2);
  if (layer.scheme.quantized && weight.act_order) rows.index = take(parts * layer.k * 4);
  if (layer.scheme.pre_scale) rows.pre_scale = take(parts * layer.k * 4);
  if (layer.bias) rows.bias = take(layer.n * 4);
  rows.bytes = at;
  return rows;
}

const Layout code_rows{"code_rows",
                       2,
                       [](const LayerSpec& layer) { return code_rows_of(layer).bytes; },
                       pack_code_rows,
                       unpack_code_rows,
                       Platform::cuda};

}  // namespace gearshift
