#include "kernel/cpu/stage/tiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernel/cpu/isa.h"
#include "kernel/cpu/stage/quantize.h"
#include "kernel/cpu/stage/x86.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

// Column of eight at each place of a row's floats or bf16 values.
constexpr int kFloatPairs[8] = {0, 2, 1, 3, 4, 6, 5, 7};
constexpr int kBf16Pairs[8] = {0, 2, 4, 6, 1, 3, 5, 7};

bool power_of_two_scales(const ActivationScheme& scheme) {
  return scheme.rule == ScaleRule::e8m0_floor || scheme.rule == ScaleRule::e8m0_ceil ||
         scheme.rule == ScaleRule::e8m0_even;
}

E2m1Recipe e2m1_recipe(const ActivationScheme& scheme, const PartWeights& part) {
  E2m1Recipe recipe{scheme.group, 1, format::MxRule::floor};
  if (!power_of_two_scales(scheme)) {
    recipe.global = nvfp4_input_global(scheme, part);
  } else if (scheme.rule != ScaleRule::e8m0_floor) {
    recipe.rule = scheme.rule == ScaleRule::e8m0_ceil ? format::MxRule::ceil : format::MxRule::even;
  }
  return recipe;
}

// ---- one row of a segment into its tile
// -------------------------------------------------------------------------------

void put_codes(const int8_t* codes, int64_t count, int64_t w, int64_t r, int8_t* tile) {
  for (int64_t k = 0; k < count; k += 4) std::memcpy(tile + (k / 4 * w + r) * 4, codes + k, 4);
}

// Corrections of `count` columns, from sums over units that int16 holds.
void put_corrections(const int8_t* codes, int64_t count, const TileShape& shape, int32_t bias, int64_t w, int64_t r,
                     int32_t* correction) {
  const Isa isa = active_isa();
  const int64_t unit = std::min<int64_t>(shape.span, 32);
  const int64_t units_each = shape.unit() / unit;
  uint32_t sums[64];
  int32_t total = 0;
  for (int64_t u = 0; u * unit < count; ++u) {
    if (u % 64 == 0) sum_halfwords(isa, codes + u * unit, unit, std::min<int64_t>(64, count / unit - u), sums);
    const int32_t low = static_cast<int16_t>(sums[u % 64] & 0xffffu);
    const int32_t high = static_cast<int16_t>(sums[u % 64] >> 16);
    int32_t& to = correction[u / units_each * w + r];
    if (shape.correction == Correction::halfwords) {
      to = static_cast<int32_t>((static_cast<uint32_t>(-bias * low) & 0xffffu) | static_cast<uint32_t>(-bias * high)
                                                                                     << 16);
      continue;
    }
    total = u % units_each == 0 ? low + high : total + low + high;
    to = -bias * total;
  }
}

// bf16 dots take subnormal numbers as zero: rows of nothing but tiny values are multiplied by a power of two first.
constexpr float kTinyRow = 0x1p-60f;
constexpr float kLiftRow = 0x1p60f;

// Returns what the results have to be multiplied by.
double lift_tiny(float* values, int64_t count) {
  float most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(values[i]));
  if (most == 0 || most >= kTinyRow) return 1;
  for (int64_t i = 0; i < count; ++i) values[i] *= kLiftRow;
  return 1 / kLiftRow;
}

#if defined(__x86_64__)

// 32 columns to bf16 in the order of pairs.
GEARSHIFT_AVX2 void put_line_vectors(const float* values, uint16_t* to) {
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
  for (int64_t k = 0; k < 32; k += 8) {
    const __m256i bits = _mm256_permutevar8x32_epi32(_mm256_castps_si256(_mm256_loadu_ps(values + k)), order);
    const __m256i words = _mm256_srli_epi32(bits, 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(words, words), 0xd8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + k), _mm256_castsi256_si128(packed));
  }
}

#endif

// Row r of w, a line of 32 columns after another.
void put_lines(const float* values, int64_t count, int64_t w, int64_t r, uint16_t* to) {
  to += 32 * r;
#if defined(__x86_64__)
  if (isa_covers(active_isa(), Isa::avx2)) {
    for (int64_t k = 0; k < count; k += 32, to += 32 * w) put_line_vectors(values + k, to);
    return;
  }
#endif
  for (int64_t k = 0; k < count; ++k)
    to[k / 32 * 32 * w + k % 32] =
        static_cast<uint16_t>(std::bit_cast<uint32_t>(values[k / 8 * 8 + kBf16Pairs[k % 8]]) >> 16);
}

void put_floats(const float* values, int64_t count, int64_t w, int64_t r, XOrder order, uint8_t* tile) {
  if (order == XOrder::bf16_pairs) {
    auto* to = reinterpret_cast<uint16_t*>(tile) + 2 * r;
    for (int64_t k = 0; k < count; k += 8) {
      for (int i = 0; i < 8; i += 2, to += 2 * w) {
        to[0] = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[k + kBf16Pairs[i]]) >> 16);
        to[1] = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[k + kBf16Pairs[i + 1]]) >> 16);
      }
    }
    return;
  }
  if (order == XOrder::float_pairs) {
    float* to = reinterpret_cast<float*>(tile) + 2 * r;
    for (int64_t k = 0; k < count; k += 8) {
      for (int i = 0; i < 8; i += 2, to += 2 * w) {
        to[0] = values[k + kFloatPairs[i]];
        to[1] = values[k + kFloatPairs[i + 1]];
      }
    }
    return;
  }
  float* to = reinterpret_cast<float*>(tile) + r;
  for (int64_t k = 0; k < count; ++k) to[k * w] = values[k];
}

// As load_row, by vectors where x is not multiplied by columns first.
void load(const Activations& a, int64_t row, int64_t first, int64_t count, float* out) {
  if (a.part->pre_scale.empty()) return load_floats(active_isa(), a.args->x, row, first, count, out);
  load_row(a.args->x, row, first, count, *a.part, out);
}

// ---- a whole row, ready for the product
// --------------------------------------------------------------------------------

// Columns in packed order, zeros past K.
void put_in_order(const Activations& a, const TileShape& shape, const float* loaded, float* values) {
  for (int64_t i = 0; i < shape.columns; ++i) values[i] = a.order[i] < 0 ? 0 : loaded[a.order[i]];
}

// The recipe of int8 activations that has a vector version: one scale a row, made now.
bool int8_by_row(const Scheme& scheme) {
  const ActivationScheme& activation = *scheme.activation;
  return activation.format == Format::int8 && activation.dynamic && activation.symmetric &&
         activation.granularity == Granularity::token;
}

// Loads a row and quantizes it to bytes in packed order; returns its scale.
double ready_codes(const Activations& a, const TileShape& shape, int64_t row, float* values, float* unordered,
                   int8_t* codes) {
  const int64_t k = a.args->weights->spec->k;
  load(a, row, 0, k, a.order == nullptr ? values : unordered);
  if (a.order != nullptr) {
    put_in_order(a, shape, unordered, values);
  } else {
    std::fill(values + k, values + shape.columns, 0.0f);
  }
  return quantize_int8_for(active_isa())(values, shape.columns, codes);
}

// Loads, quantizes, and puts columns in packed order: values[columns], codes in units of `scales` per activation group.
double ready_row(const Activations& a, const TileShape& shape, int64_t row, float* values, float* scales,
                 float* unordered) {
  const LayerSpec& layer = *a.args->weights->spec;
  const Scheme& scheme = layer.scheme;
  const int64_t k = layer.k;
  float* loaded = a.order == nullptr ? values : unordered;
  load(a, row, 0, k, loaded);
  const double factor = quantize_row(scheme, *a.part, a.use, a.tensor_scale, loaded, k, scales);
  const ActivationGroups groups = activation_groups(scheme, k, a.use);
  if (groups.count > 1 || scales[0] != 1) {
    for (int64_t i = 0; i < k; ++i) loaded[i] *= scales[i / groups.group];
  }
  if (a.order != nullptr) {
    put_in_order(a, shape, loaded, values);
  } else {
    std::fill(values + k, values + shape.columns, 0.0f);
  }
  return factor;
}

// The same for e2m1 activations in their own order, by the vector quantizer. `codes`: as many bytes as columns.
double ready_e2m1(const Activations& a, const TileShape& shape, int64_t row, float* values, float* scales,
                  int8_t* codes) {
  const LayerSpec& layer = *a.args->weights->spec;
  const ActivationScheme& scheme = *layer.scheme.activation;
  load(a, row, 0, layer.k, values);
  std::fill(values + layer.k, values + shape.columns, 0.0f);
  quantize_e2m1_for(active_isa())(e2m1_recipe(scheme, *a.part), values, shape.columns / scheme.group, codes, scales);
  for (int64_t i = 0; i < shape.columns; ++i)
    values[i] = static_cast<float>(codes[i]) * (0.5f * scales[i / scheme.group]);
  return power_of_two_scales(scheme) ? 1 : nvfp4_input_factor(scheme, *a.part);
}

bool e2m1_groups(const Activations& a) {
  const Scheme& scheme = a.args->weights->spec->scheme;
  return a.order == nullptr && quantizes(scheme, a.use) && scheme.activation->format == Format::e2m1 &&
         scheme.activation->granularity == Granularity::token_group;
}

// Columns enter in their own order, and each activation group is quantized by itself. Not where tiny rows have to be
// found.
bool by_segments(const Activations& a, const TileShape& shape) {
  return a.order == nullptr && !is_bf16(shape.order) &&
         (shape.x_scales || !quantizes(a.args->weights->spec->scheme, a.use));
}

// Columns [k0, k0 + count) of a row, zeros past K.
void load_segment(const Activations& a, int64_t row, int64_t k0, int64_t count, float* values) {
  const int64_t stored = std::min(count, a.args->weights->spec->k - k0);
  load(a, row, k0, stored, values);
  std::fill(values + stored, values + count, 0.0f);
}

}  // namespace

int64_t segment_columns(const Activations& a, const TileShape& shape) {
  return by_segments(a, shape) ? kBlockColumns : shape.columns;
}

void pack_tile(const Activations& a, const TileShape& shape, int64_t m0, int64_t tile, int64_t segment,
               const Tiles& tiles, float* scratch) {
  const LayerSpec& layer = *a.args->weights->spec;
  const int64_t w = shape.width(tile);
  const int64_t step = segment_columns(a, shape);
  const int64_t k0 = segment * step;
  const int64_t count = std::min(step, shape.columns - k0);
  uint8_t* x = tiles.x + (tile * shape.tile_rows * shape.columns + k0 * w) * shape.element_bytes();
  int32_t* correction = tiles.correction + tile * shape.tile_rows * shape.units() + k0 / shape.unit() * w;
  float* x_scales = tiles.scales + tile * shape.tile_rows * shape.spans() + k0 / shape.span * w;
  auto* codes = reinterpret_cast<int8_t*>(scratch + 2 * shape.columns);
  const bool by_row = !by_segments(a, shape);
  if (shape.order != XOrder::dwords) {
    for (int64_t r = 0; r < w; ++r) {
      const int64_t row = tile * shape.tile_rows + r;
      float* scales = scratch + shape.columns;
      if (by_row) {
        tiles.factor[row] = e2m1_groups(a)
                                ? ready_e2m1(a, shape, m0 + row, scratch, scales, codes)
                                : ready_row(a, shape, m0 + row, scratch, scales, scratch + 2 * shape.columns);
        if (is_bf16(shape.order)) tiles.factor[row] *= lift_tiny(scratch, shape.columns);
      } else {
        load_segment(a, m0 + row, k0, count, scratch);
        if (k0 == 0) tiles.factor[row] = 1;
      }
      if (shape.order == XOrder::bf16_lines) {
        put_lines(scratch, count, w, r, reinterpret_cast<uint16_t*>(x));
      } else {
        put_floats(scratch, count, w, r, shape.order, x);
      }
    }
    return;
  }
  const ActivationScheme& scheme = *layer.scheme.activation;
  for (int64_t r = 0; r < w; ++r) {
    const int64_t row = tile * shape.tile_rows + r;
    if (!by_row) {
      load_segment(a, m0 + row, k0, count, scratch);
      float scales[kBlockColumns / 16];
      const int64_t groups = count / scheme.group;
      quantize_e2m1_for(active_isa())(e2m1_recipe(scheme, *a.part), scratch, groups, codes, scales);
      for (int64_t g = 0; g < groups; ++g) x_scales[g * w + r] = scales[g];
      if (k0 == 0) tiles.factor[row] = power_of_two_scales(scheme) ? 1 : nvfp4_input_factor(scheme, *a.part);
    } else if (int8_by_row(layer.scheme)) {
      tiles.factor[row] = ready_codes(a, shape, m0 + row, scratch, scratch + shape.columns, codes);
    } else {
      tiles.factor[row] = ready_row(a, shape, m0 + row, scratch, scratch + shape.columns, scratch + 2 * shape.columns);
      for (int64_t i = 0; i < count; ++i) codes[i] = static_cast<int8_t>(scratch[i]);
    }
    put_codes(codes, count, w, r, reinterpret_cast<int8_t*>(x));
    put_corrections(codes, count, shape, a.bias, w, r, correction);
  }
}

bool exact_in_bf16(const Scheme& scheme, ActivationUse use, DType dtype) {
  if (!quantizes(scheme, use)) return dtype == DType::bf16 && !scheme.pre_scale;
  const ActivationScheme& activation = *scheme.activation;
  return activation.granularity != Granularity::token_group || activation.format == Format::e2m1 ||
         power_of_two_scales(activation);
}

}  // namespace gearshift
