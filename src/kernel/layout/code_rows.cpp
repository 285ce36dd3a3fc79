#include "kernel/layout/code_rows.h"

#include <algorithm>
#include <cstring>

#include "base/math.h"
#include "format/bf16.h"
#include "format/fp16.h"
#include "kernel/output.h"
#include "kernel/parts.h"
#include "kernel/reference/decode.h"

namespace gearshift {

namespace {

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

int64_t scales_a_row(const LayerSpec& layer) {
  const Grouping& grouping = layer.scheme.weight.grouping;
  const bool grouped = grouping.kind == Grouping::Kind::group || grouping.kind == Grouping::Kind::block;
  return grouped ? ceil_div(layer.k, grouping.cols) : 1;
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
        for (int64_t g = 0; g < rows.groups; ++g) {
          const float scale = stored.scale(r, g);
          if (rows.scales >= 0) std::memcpy(out + rows.scales + (row * rows.groups + g) * 4, &scale, 4);
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
    if (rows.pre_scale >= 0 && !part.pre_scale.empty()) {
      for (int64_t k = 0; k < layer.k; ++k) {
        float value = 0;
        if (part.pre_scale_dtype == DType::f32) {
          std::memcpy(&value, part.pre_scale.data() + k * 4, 4);
        } else {
          uint16_t code;
          std::memcpy(&code, part.pre_scale.data() + k * 2, 2);
          value = part.pre_scale_dtype == DType::f16 ? format::decode_fp16(code) : format::decode_bf16(code);
        }
        std::memcpy(out + rows.pre_scale + (static_cast<int64_t>(p) * layer.k + k) * 4, &value, 4);
      }
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
  if (rows.scales >= 0) std::memcpy(scales, packed + rows.scales, static_cast<size_t>(layer.n * rows.groups * 4));
}

}  // namespace

CodeRows code_rows_of(const LayerSpec& layer) {
  CodeRows rows;
  rows.element_bytes = has_floats(layer) ? bits(dtype_of_floats(layer)) / 8 : 1;
  rows.row_bytes = ceil_div(layer.k * rows.element_bytes, 16) * 16;
  rows.groups = layer.scheme.quantized ? scales_a_row(layer) : 1;
  int64_t at = ceil_div(layer.n * rows.row_bytes, 64) * 64;
  const auto take = [&at](int64_t bytes) { return std::exchange(at, at + ceil_div(bytes, 64) * 64); };
  const auto parts = static_cast<int64_t>(part_count(layer));
  const WeightScheme& weight = layer.scheme.weight;
  if (layer.scheme.quantized && weight.grouping.kind != Grouping::Kind::tensor)
    rows.scales = take(layer.n * rows.groups * 4);
  if (has_integer_codes(layer) && !weight.symmetric) rows.zeros = take(layer.n * rows.groups * 2);
  if (layer.scheme.quantized && weight.act_order) rows.index = take(parts * layer.k * 4);
  if (layer.scheme.pre_scale) rows.pre_scale = take(parts * layer.k * 4);
  if (layer.bias) rows.bias = take(layer.n * 4);
  rows.bytes = at;
  return rows;
}

const Layout code_rows{"code_rows",
                       1,
                       [](const LayerSpec& layer) { return code_rows_of(layer).bytes; },
                       pack_code_rows,
                       unpack_code_rows,
                       Platform::cuda};

}  // namespace gearshift
