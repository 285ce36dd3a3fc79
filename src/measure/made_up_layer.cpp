#include "measure/made_up_layer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "format/bf16.h"
#include "format/fp16.h"
#include "layer/make_scheme.h"
#include "layer/stored_bits.h"

namespace gearshift {

namespace {

Scheme nvfp4() {
  Scheme scheme = quantized_weights(Format::e2m1, Storage::nibbles, {Grouping::Kind::group, 1, 16}, DType::f8_e4m3);
  scheme.weight.global_scale = scheme.weight.global_divides = true;
  return scheme;
}

Scheme microscaled(Format format, Storage storage, int64_t bits_of_activation) {
  Scheme scheme = quantized_weights(format, storage, {Grouping::Kind::group, 1, 32}, DType::f8_e8m0);
  scheme.activation =
      quantized_activations(bits_of_activation == 4 ? Format::e2m1 : Format::e4m3, Granularity::token_group, 32);
  scheme.activation->rule = ScaleRule::e8m0_even;
  return scheme;
}

// Bytes of the codes of n rows.
int64_t bytes_of_codes(const Scheme& scheme, int64_t n, int64_t k, DType float_dtype) {
  return code_bytes(scheme.weight.storage, code_width(scheme, float_dtype), stored_extents(scheme, n, k));
}

// How zero points of such a layer are stored where no tensor says.
DType zero_point_dtype(const WeightScheme& weight) {
  return weight.storage == Storage::dense || weight.storage == Storage::rows_in_byte ? DType::i8 : DType::i32;
}

// About the root mean square of codes that are drawn evenly.
float usual_code(Format format) {
  switch (format) {
    case Format::float_:
      return 1;
    case Format::e4m3:
      return 100;
    case Format::e5m2:
      return 10000;
    case Format::e2m1:
    case Format::e2m3:
      return 3;
    case Format::e3m2:
      return 8;
    default:
      return 0.6f * static_cast<float>(1 << (bits(format) - 1));
  }
}

const StoredTensor* tensor_of(const Module& module, TensorRole role) {
  for (const StoredTensor& tensor : module.tensors) {
    if (tensor.role == role) return &tensor;
  }
  return nullptr;
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
  Maker(MadeUpLayer& layer, uint64_t seed) : layer_(layer), spec_(layer.plan.layer), random_(seed) {}

  PartWeights part(const Module& module) {
    const Scheme& scheme = spec_.scheme;
    const int64_t n = module.n, k = spec_.k;
    const StoredTensor* weight = tensor_of(module, TensorRole::weight);
    const DType stored = weight != nullptr ? weight->dtype : DType::bf16;
    const DType float_dtype = scheme.quantized ? DType::bf16 : stored;
    PartWeights part;
    part.n = n;
    part.weight_dtype = scheme.quantized ? DType::u8 : stored;
    part.weight = codes(n, float_dtype);
    const StoredExtents extents = stored_extents(scheme, n, k);
    if (scheme.quantized) {
      part.scale_dtype = scheme.weight.scale;
      part.scale = scales(scheme.weight, tile_count(extents));
    }
    if (scheme.quantized && !scheme.weight.symmetric) {
      const StoredTensor* zero = tensor_of(module, TensorRole::weight_zero_point);
      part.zero_point_dtype = zero != nullptr ? zero->dtype : zero_point_dtype(scheme.weight);
      part.zero_point = bytes(zero_point_bytes(scheme.weight, extents, part.zero_point_dtype));
      small_zero_points(part);
    }
    if (scheme.weight.act_order) part.group_index = group_index();
    if (scheme.pre_scale) {
      part.pre_scale_dtype = DType::bf16;
      part.pre_scale = floats(k, DType::bf16, 1.0f);
    }
    const float spread = std::uniform_real_distribution<float>(0.5f, 2.0f)(random_);
    if (scheme.weight.global_scale) part.weight_global = scheme.weight.global_divides ? 1000 * spread : 0.001f * spread;
    if (scheme.activation && scheme.activation->stored_scale) {
      part.input_scale = scheme.activation->stored_multiplies ? 500.0f : 0.02f;
    }
    if (spec_.bias) {
      part.bias_dtype = float_dtype;
      part.bias = floats(n, float_dtype, 1.0f);
    }
    return part;
  }

 private:
  uint8_t* add(int64_t count) {
    layer_.stored.emplace_back(static_cast<size_t>(count));
    return layer_.stored.back().data();
  }
  ByteView last() const { return layer_.stored.back(); }

  ByteView bytes(int64_t count) {
    uint8_t* out = add(count);
    for (int64_t i = 0; i < count; i += 8) {
      const uint64_t drawn = random_();
      std::memcpy(out + i, &drawn, static_cast<size_t>(std::min<int64_t>(8, count - i)));
    }
    return last();
  }

  // The sum of four even draws: normal enough, and a draw of the generator makes one number.
  ByteView floats(int64_t count, DType dtype, float deviation) {
    const int64_t size = bits(dtype) / 8;
    uint8_t* out = add(count * size);
    const float unit = deviation * 1.7320508f / 65536.0f;
    for (int64_t i = 0; i < count; ++i) {
      const uint64_t drawn = random_();
      int32_t sum = -2 * 0xFFFF;
      for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int32_t>((drawn >> shift) & 0xFFFF);
      put_float(out + i * size, dtype, static_cast<float>(sum) * unit);
    }
    return last();
  }

  ByteView codes(int64_t n, DType float_dtype) {
    const Scheme& scheme = spec_.scheme;
    if (!scheme.quantized) return floats(n * spec_.k, float_dtype, 0.05f);
    const ByteView drawn = bytes(bytes_of_codes(scheme, n, spec_.k, float_dtype));
    // Patterns of 8-bit floats that are no number give way to zero.
    const bool e4m3 = scheme.weight.format == Format::e4m3, e5m2 = scheme.weight.format == Format::e5m2;
    if (!e4m3 && !e5m2) return drawn;
    for (uint8_t& code : layer_.stored.back()) {
      if (e4m3 ? (code & 0x7F) == 0x7F : (code & 0x7C) == 0x7C) code = 0;
    }
    return drawn;
  }

  ByteView scales(const WeightScheme& weight, int64_t count) {
    const int64_t size = bits(weight.scale) / 8;
    uint8_t* out = add(count * size);
    const float unit = 0.05f / usual_code(weight.format);  // brings weights near 0.05
    const int exponent = 127 + static_cast<int>(std::lround(std::log2(unit)));
    std::uniform_real_distribution<float> spread(0.5f, 2.0f);
    for (int64_t i = 0; i < count; ++i) {
      if (weight.scale == DType::f8_e8m0) {
        out[i] = static_cast<uint8_t>(exponent - 2 + static_cast<int>(random_() % 4));
      } else if (weight.scale == DType::f8_e4m3) {
        out[i] = static_cast<uint8_t>(0x50 + random_() % 0x20);  // 8 to 120: divided by a tensor-wide 1000
      } else {
        put_float(out + i * size, weight.scale, unit * spread(random_));
      }
    }
    return last();
  }

  // One zero point a word is a number of the codes' range, not 32 drawn bits.
  void small_zero_points(PartWeights& part) {
    const Storage storage = spec_.scheme.weight.storage;
    const bool packed = storage != Storage::dense && storage != Storage::rows_in_byte && storage != Storage::nibbles;
    std::vector<uint8_t>& stored = layer_.stored.back();
    const int code_bits = bits(spec_.scheme.weight.format);
    if (packed && part.zero_point_dtype == DType::i32) return;
    const size_t size = static_cast<size_t>(bits(part.zero_point_dtype) / 8);
    for (size_t i = 0; i < stored.size(); i += size) {
      const auto zero = static_cast<int32_t>(stored[i] % (1u << (code_bits - 1)));
      std::memcpy(stored.data() + i, &zero, size);  // little-endian: the low bytes of a small number
    }
  }

  ByteView group_index() {
    const int64_t k = spec_.k, cols = std::max<int64_t>(1, spec_.scheme.weight.grouping.cols);
    std::vector<int32_t> groups(static_cast<size_t>(k));
    for (int64_t i = 0; i < k; ++i) groups[static_cast<size_t>(i)] = static_cast<int32_t>(i / cols);
    std::shuffle(groups.begin(), groups.end(), random_);
    std::memcpy(add(k * 4), groups.data(), static_cast<size_t>(k) * 4);
    return last();
  }

  MadeUpLayer& layer_;
  const LayerSpec& spec_;
  std::mt19937_64 random_;
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
      return quantized_weights(Format::e4m3, Storage::dense, row, DType::bf16);
    case Family::fp8_w8a8:
      scheme = quantized_weights(Format::e4m3, Storage::dense, row, DType::bf16);
      scheme.activation = quantized_activations(Format::e4m3, Granularity::token);
      return scheme;
    case Family::fp8_block_w8a8:
      scheme = quantized_weights(Format::e4m3, Storage::dense, {Grouping::Kind::block, 128, 128}, DType::f32);
      scheme.activation = quantized_activations(Format::e4m3, Granularity::token_group, 128);
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
      scheme.activation = quantized_activations(Format::e2m1, Granularity::token_group, 16);
      scheme.activation->stored_scale = scheme.activation->stored_multiplies = true;
      return scheme;
    case Family::int8_w8a8:
      scheme = quantized_weights(Format::int8, Storage::dense, row, DType::bf16);
      scheme.activation = quantized_activations(Format::int8, Granularity::token);
      return scheme;
    case Family::mixed_precision:
      return quantized_weights(Format::int4, Storage::dense_bits, group128, DType::bf16);
    case Family::w4a8:
      scheme = quantized_weights(Format::int4, Storage::dense_bits, group128, DType::bf16);
      scheme.activation = quantized_activations(Format::int8, Granularity::token);
      return scheme;
  }
  return scheme;
}

LayerSpec made_up_spec(const Scheme& scheme, const std::vector<int64_t>& part_rows, int64_t k, bool bias, DType dtype) {
  LayerSpec spec;
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
    spec.weight_bytes += static_cast<uint64_t>(bytes_of_codes(scheme, rows, k, dtype));
    if (scheme.quantized) {
      const WeightScheme& weight = scheme.weight;
      spec.weight_bytes +=
          static_cast<uint64_t>(tile_count(stored_extents(scheme, rows, k)) * (bits(weight.scale) / 8));
      if (!weight.symmetric) {
        module.tensors.push_back(
            {TensorRole::weight_zero_point, module.name + ".zero_point", zero_point_dtype(weight), {}});
      }
    }
    spec.modules.push_back(std::move(module));
  }
  return spec;
}

LayerSpec one_expert(LayerSpec layer) {
  if (layer.kind != LayerKind::experts || layer.experts < 1) return layer;
  const auto experts = static_cast<size_t>(layer.experts);
  if (!layer.stacked) layer.modules.resize(std::max<size_t>(1, layer.modules.size() / experts));
  layer.weight_bytes /= experts;
  layer.kind = LayerKind::linear;
  layer.experts = 0;
  layer.stacked = false;
  return layer;
}

std::unique_ptr<MadeUpLayer> make_up_layer(LayerSpec layer, uint64_t seed) {
  auto made = std::make_unique<MadeUpLayer>();
  made->plan.layer = one_expert(std::move(layer));
  const LayerSpec& spec = made->plan.layer;
  Maker maker(*made, seed);
  LayerWeights weights;
  weights.spec = &spec;
  for (const Module& module : spec.modules) weights.parts.push_back(maker.part(module));
  made->prepared.plan = &made->plan;
  made->prepared.weights.push_back(std::move(weights));
  made->plan.decision = std::make_shared<const Decision>();
  return made;
}

std::unique_ptr<MadeUpLayer> make_up_layer(const Scheme& scheme, const std::vector<int64_t>& part_rows, int64_t k,
                                           uint64_t seed, bool bias, DType dtype) {
  return make_up_layer(made_up_spec(scheme, part_rows, k, bias, dtype), seed);
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
