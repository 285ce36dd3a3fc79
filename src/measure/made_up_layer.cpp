#include "measure/made_up_layer.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/math.h"
#include "format/bf16.h"
#include "format/fp16.h"

namespace gearshift {

namespace {

ActivationScheme activation(Format format, Granularity granularity, int64_t group) {
  ActivationScheme scheme;
  scheme.format = format;
  scheme.granularity = granularity;
  scheme.group = group;
  return scheme;
}

Scheme quantized(Format format, Storage storage, Grouping grouping, DType scale) {
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = format;
  scheme.weight.storage = storage;
  scheme.weight.grouping = grouping;
  scheme.weight.scale = scale;
  return scheme;
}

Scheme nvfp4() {
  Scheme scheme = quantized(Format::e2m1, Storage::nibbles, {Grouping::Kind::group, 1, 16}, DType::f8_e4m3);
  scheme.weight.global_scale = scheme.weight.global_divides = true;
  return scheme;
}

Scheme microscaled(Format format, Storage storage, int64_t bits_of_activation) {
  Scheme scheme = quantized(format, storage, {Grouping::Kind::group, 1, 32}, DType::f8_e8m0);
  scheme.activation = activation(bits_of_activation == 4 ? Format::e2m1 : Format::e4m3, Granularity::token_group, 32);
  scheme.activation->rule = ScaleRule::e8m0_even;
  return scheme;
}

int64_t row_bytes(const Scheme& scheme, int64_t k, DType float_dtype) {
  const int code_bits = scheme.quantized ? bits(scheme.weight.format) : bits(float_dtype);
  switch (scheme.weight.storage) {
    case Storage::dense:
      return k * std::max(8, code_bits) / 8;
    case Storage::dense_bits:
      return ceil_div(k * code_bits, 32) * 4;
    default:
      return ceil_div(k * code_bits, 8);
  }
}

int64_t scale_count(const Grouping& grouping, int64_t n, int64_t k) {
  switch (grouping.kind) {
    case Grouping::Kind::tensor:
      return 1;
    case Grouping::Kind::row:
    case Grouping::Kind::whole_row:
      return n;
    case Grouping::Kind::group:
      return n * ceil_div(k, grouping.cols);
    case Grouping::Kind::block:
      return ceil_div(n, grouping.rows) * ceil_div(k, grouping.cols);
  }
  return 0;
}

void put_float(uint8_t* at, DType dtype, float value) {
  if (dtype == DType::f32) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const uint16_t code = dtype == DType::f16 ? format::encode_fp16(value) : format::encode_bf16(value);
  std::memcpy(at, &code, sizeof code);
}

class Maker {
 public:
  Maker(MadeUpLayer& layer, uint64_t seed, DType dtype) : layer_(layer), random_(seed), dtype_(dtype) {}

  PartWeights part(const LayerSpec& spec, int64_t n) {
    PartWeights part;
    part.n = n;
    part.weight = codes(spec.scheme, n, spec.k);
    part.weight_dtype = spec.scheme.quantized ? DType::u8 : dtype_;
    if (spec.scheme.quantized) {
      part.scale_dtype = spec.scheme.weight.scale;
      part.scale = scales(spec.scheme.weight, scale_count(spec.scheme.weight.grouping, n, spec.k));
    }
    const float spread = std::uniform_real_distribution<float>(0.5f, 2.0f)(random_);
    if (spec.scheme.weight.global_scale)
      part.weight_global = spec.scheme.weight.global_divides ? 1000 * spread : 0.001f * spread;
    if (spec.scheme.activation && spec.scheme.activation->stored_scale) {
      part.input_scale = spec.scheme.activation->stored_multiplies ? 500.0f : 0.02f;
    }
    if (spec.bias) {
      part.bias_dtype = dtype_;
      part.bias = floats(n, 1.0f);
    }
    return part;
  }

 private:
  uint8_t* add(int64_t bytes) {
    layer_.stored.emplace_back(static_cast<size_t>(bytes));
    return layer_.stored.back().data();
  }
  ByteView last() const { return layer_.stored.back(); }

  ByteView floats(int64_t count, float deviation) {
    const int64_t size = bits(dtype_) / 8;
    uint8_t* out = add(count * size);
    std::normal_distribution<float> normal(0, deviation);
    for (int64_t i = 0; i < count; ++i) put_float(out + i * size, dtype_, normal(random_));
    return last();
  }

  ByteView codes(const Scheme& scheme, int64_t n, int64_t k) {
    if (!scheme.quantized) return floats(n * k, 0.05f);
    const int64_t count = n * row_bytes(scheme, k, dtype_);
    uint8_t* out = add(count);
    const bool e4m3 = scheme.weight.format == Format::e4m3;
    for (int64_t i = 0; i < count; ++i) {
      do out[i] = static_cast<uint8_t>(random_());
      while (e4m3 && (out[i] & 0x7F) == 0x7F);
    }
    return last();
  }

  ByteView scales(const WeightScheme& weight, int64_t count) {
    const int64_t size = bits(weight.scale) / 8;
    uint8_t* out = add(count * size);
    // Codes reach 448 (e4m3), 6 (e2m1), 127 (int8): the scale brings weights near 0.05.
    const float unit = weight.format == Format::e4m3 ? 0.05f / 100 : 0.05f / 3;
    std::uniform_real_distribution<float> spread(0.5f, 2.0f);
    for (int64_t i = 0; i < count; ++i) {
      if (weight.scale == DType::f8_e8m0) {
        out[i] = static_cast<uint8_t>((weight.format == Format::e4m3 ? 115 : 120) + random_() % 4);
      } else if (weight.scale == DType::f8_e4m3) {
        out[i] = static_cast<uint8_t>(0x50 + random_() % 0x20);  // 8 to 120: divided by a tensor-wide 1000
      } else {
        put_float(out + i * size, weight.scale, unit * spread(random_));
      }
    }
    return last();
  }

  MadeUpLayer& layer_;
  std::mt19937_64 random_;
  DType dtype_;
};

}  // namespace

Scheme common_scheme(Family family) {
  const Grouping row{Grouping::Kind::row, 1, 0};
  const Grouping group128{Grouping::Kind::group, 1, 128};
  Scheme scheme;
  switch (family) {
    case Family::bf16:
      return scheme;
    case Family::w8a16_fp8:
      return quantized(Format::e4m3, Storage::dense, row, DType::bf16);
    case Family::fp8_w8a8:
      scheme = quantized(Format::e4m3, Storage::dense, row, DType::bf16);
      scheme.activation = activation(Format::e4m3, Granularity::token, 0);
      return scheme;
    case Family::fp8_block_w8a8:
      scheme = quantized(Format::e4m3, Storage::dense, {Grouping::Kind::block, 128, 128}, DType::f32);
      scheme.activation = activation(Format::e4m3, Granularity::token_group, 128);
      return scheme;
    case Family::mxfp8:
      return microscaled(Format::e4m3, Storage::dense, 8);
    case Family::mxfp6:
      return microscaled(Format::e2m3, Storage::fp6_bytes, 8);
    case Family::mxfp4:
      return microscaled(Format::e2m1, Storage::nibbles, 4);
    case Family::nvfp4_w4a16:
      return nvfp4();
    case Family::nvfp4_w4a4:
      scheme = nvfp4();
      scheme.activation = activation(Format::e2m1, Granularity::token_group, 16);
      scheme.activation->stored_scale = scheme.activation->stored_multiplies = true;
      return scheme;
    case Family::int8_w8a8:
      scheme = quantized(Format::int8, Storage::dense, row, DType::bf16);
      scheme.activation = activation(Format::int8, Granularity::token, 0);
      return scheme;
    case Family::mixed_precision:
      return quantized(Format::int4, Storage::dense_bits, group128, DType::bf16);
    case Family::w4a8:
      scheme = quantized(Format::int4, Storage::dense_bits, group128, DType::bf16);
      scheme.activation = activation(Format::int8, Granularity::token, 0);
      return scheme;
  }
  return scheme;
}

std::unique_ptr<MadeUpLayer> make_up_layer(const Scheme& scheme, const std::vector<int64_t>& part_rows, int64_t k,
                                           uint64_t seed, bool bias, DType dtype) {
  auto made = std::make_unique<MadeUpLayer>();
  LayerSpec& spec = made->plan.layer;
  spec.name = "made_up";
  spec.scheme = scheme;
  spec.family = family_of(scheme);
  spec.k = k;
  spec.bias = bias;
  for (size_t i = 0; i < part_rows.size(); ++i) {
    const int64_t rows = part_rows[i];
    spec.n += rows;
    if (part_rows.size() > 1) spec.parts.push_back("part" + std::to_string(i));
    Module module{"part" + std::to_string(i), rows, {}};
    // Contracts ask for the stored type of float weights.
    module.tensors.push_back(
        {TensorRole::weight, module.name + ".weight", scheme.quantized ? DType::u8 : dtype, {rows, k}});
    spec.modules.push_back(std::move(module));
  }
  Maker maker(*made, seed, dtype);
  LayerWeights weights;
  weights.spec = &spec;
  for (const int64_t rows : part_rows) weights.parts.push_back(maker.part(spec, rows));
  made->prepared.plan = &made->plan;
  made->prepared.weights.push_back(std::move(weights));
  for (const auto& bytes : made->stored) spec.weight_bytes += bytes.size();
  made->plan.decision = std::make_shared<const Decision>();
  return made;
}

Result<void> use_kernel(MadeUpLayer& layer, const Kernel& kernel, int threads) {
  auto decision = std::make_shared<Decision>();
  decision->layer_class = layer_class(layer.plan.layer);
  PlannedRange range;
  range.kernel = &kernel;
  decision->ranges.push_back(range);
  layer.plan.decision = std::move(decision);
  return add_layout(layer.prepared, *kernel.layout, threads);
}

}  // namespace gearshift
