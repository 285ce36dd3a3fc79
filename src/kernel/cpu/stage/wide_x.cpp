#include "kernel/cpu/stage/wide_x.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "format/e4m3.h"
#include "format/fp8.h"
#include "format/range.h"
#include "kernel/cpu/stage/x86.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

// bf16 dots take subnormal numbers as zero: rows of nothing but tiny values are multiplied by a power of two first.
constexpr float kTiny = 0x1p-60f;
constexpr float kLift = 0x1p60f;

#if defined(__x86_64__)

// 16-bit x to fp32, and the largest magnitude, in steps of eight. Returns how many were done.
GEARSHIFT_AVX2 int64_t load_vectors(const uint16_t* x, bool bf16, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + i));
    const __m256 values =
        bf16 ? _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16)) : _mm256_cvtph_ps(codes);
    _mm256_storeu_ps(out + i, values);
  }
  return i;
}

// The second operand wins where one is NaN: NaN is passed over.
GEARSHIFT_AVX2 float abs_max_vectors(const float* x, int64_t count, int64_t& done) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256 most[4];
  for (__m256& lane : most) lane = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    for (int lane = 0; lane < 4; ++lane)
      most[lane] = _mm256_max_ps(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + i + 8 * lane)), most[lane]);
  }
  const __m256 all = _mm256_max_ps(_mm256_max_ps(most[0], most[1]), _mm256_max_ps(most[2], most[3]));
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, all);
  done = i;
  return *std::max_element(lanes, lanes + 8);
}

// RNE(x * inverse) saturated to [-128, 127]; NaN gives 0. In place, still floats.
GEARSHIFT_AVX2 int64_t int8_vectors(float* x, int64_t count, float inverse) {
  const __m256 factor = _mm256_set1_ps(inverse), low = _mm256_set1_ps(-128), high = _mm256_set1_ps(127);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    __m256 value = _mm256_mul_ps(_mm256_loadu_ps(x + i), factor);
    value = _mm256_and_ps(value, _mm256_cmp_ps(value, value, _CMP_ORD_Q));
    value = _mm256_min_ps(_mm256_max_ps(value, low), high);
    _mm256_storeu_ps(x + i, _mm256_round_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  return i;
}

// The value of the e4m3 code of x / scale, rounded to nearest even and saturated. Normal numbers keep three bits behind
// the first: adding half of the last bit kept, less one where that bit is even, and cutting; below 2^-6 the step stays
// 2^-9, which adding and taking off a number with that step rounds to.
GEARSHIFT_AVX2 int64_t e4m3_vectors(float* x, int64_t count, float scale) {
  const __m256 divisor = _mm256_set1_ps(scale), sign = _mm256_set1_ps(-0.0f), most = _mm256_set1_ps(format::e4m3_max);
  const __m256 normal = _mm256_set1_ps(0x1p-6f), step = _mm256_set1_ps(0x1.8p14f);
  const __m256i half = _mm256_set1_epi32(0x7ffff), one = _mm256_set1_epi32(1), kept = _mm256_set1_epi32(~0xfffff);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 value = _mm256_div_ps(_mm256_loadu_ps(x + i), divisor);
    const __m256 size = _mm256_andnot_ps(sign, value);
    const __m256i bits = _mm256_castps_si256(size);
    const __m256i even = _mm256_and_si256(_mm256_srli_epi32(bits, 20), one);
    const __m256 large =
        _mm256_castsi256_ps(_mm256_and_si256(_mm256_add_epi32(bits, _mm256_add_epi32(half, even)), kept));
    const __m256 small = _mm256_sub_ps(_mm256_add_ps(size, step), step);
    __m256 rounded = _mm256_blendv_ps(small, large, _mm256_cmp_ps(size, normal, _CMP_GE_OQ));
    rounded = _mm256_min_ps(most, rounded);
    // min gives its second operand where one is NaN, and NaN compares false: both ends are NaN again here.
    rounded = _mm256_blendv_ps(rounded, value, _mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    _mm256_storeu_ps(x + i, _mm256_or_ps(rounded, _mm256_and_ps(sign, value)));
  }
  return i;
}

// Integers from floats that hold them, less `shift`; adds them up. 16 at a time.
GEARSHIFT_AVX2 int64_t code_vectors(const float* values, int64_t count, int32_t shift, bool words, uint8_t* out,
                                    int32_t& total) {
  const __m256i less = _mm256_set1_epi32(shift);
  __m256i sum = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i low = _mm256_sub_epi32(_mm256_cvtps_epi32(_mm256_loadu_ps(values + i)), less);
    const __m256i high = _mm256_sub_epi32(_mm256_cvtps_epi32(_mm256_loadu_ps(values + i + 8)), less);
    sum = _mm256_add_epi32(sum, _mm256_add_epi32(low, high));
    const __m256i shorts = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    if (words) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i), shorts);
    } else {
      const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(shorts), _mm256_extracti128_si256(shorts, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), bytes);
    }
  }
  alignas(32) int32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
  for (const int32_t lane : lanes) total += lane;
  return i;
}

GEARSHIFT_AVX2 void integer_vectors(int32_t less, int32_t shift, const uint8_t* of_codes, float* sums) {
  for (int half = 0; half < 2; ++half) {
    auto* place = reinterpret_cast<__m256i*>(sums + 8 * half);
    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(of_codes + 32 * half));
    const __m256i shifted = _mm256_mullo_epi32(codes, _mm256_set1_epi32(shift));
    const __m256i sum = _mm256_add_epi32(_mm256_sub_epi32(_mm256_loadu_si256(place), _mm256_set1_epi32(less)), shifted);
    _mm256_storeu_ps(sums + 8 * half, _mm256_cvtepi32_ps(sum));
  }
}

#endif

bool vectors(Isa isa) { return isa_covers(isa, Isa::avx2); }

void load_values(const WideRecipe& recipe, Isa isa, int64_t row, int64_t k, float* out) {
  const ConstMatrix& x = recipe.args->x;
  int64_t done = 0;
#if defined(__x86_64__)
  if (vectors(isa) && x.dtype != DType::f32 && recipe.part->pre_scale.empty())
    done = load_vectors(static_cast<const uint16_t*>(x.data) + row * x.stride, x.dtype == DType::bf16, k, out);
#endif
  static_cast<void>(isa);
  load_row(x, row, done, k - done, *recipe.part, out + done);
}

float largest(Isa isa, const float* x, int64_t count) {
  int64_t done = 0;
  float most = 0;
#if defined(__x86_64__)
  if (vectors(isa)) most = abs_max_vectors(x, count, done);
#endif
  static_cast<void>(isa);
  return std::max(most, format::abs_max(x + done, count - done));
}

void round_int8(Isa isa, float* x, int64_t count, float inverse) {
  int64_t i = 0;
#if defined(__x86_64__)
  if (vectors(isa)) i = int8_vectors(x, count, inverse);
#endif
  static_cast<void>(isa);
  for (; i < count; ++i) x[i] = static_cast<float>(format::clamp_int(format::round_to_int(x[i] * inverse), -128, 127));
}

void round_e4m3(Isa isa, float* x, int64_t count, float scale) {
  int64_t i = 0;
#if defined(__x86_64__)
  if (vectors(isa)) i = e4m3_vectors(x, count, scale);
#endif
  static_cast<void>(isa);
  for (; i < count; ++i) x[i] = format::e4m3_table[format::fp8_encode_value(x[i], scale)];
}

// The recipes worth vectors of their own: int8 and e4m3 with a scale per token or per group of a token, made at run
// time as amax / largest code. Returns false for all others. Scales as quantize_row() gives them.
bool quantize_fast(const WideRecipe& recipe, Isa isa, float* values, int64_t k, float* scales, double& factor) {
  const ActivationScheme& scheme = *recipe.args->weights->spec->scheme.activation;
  const bool grouped = scheme.granularity == Granularity::token_group;
  if (!scheme.dynamic || scheme.granularity == Granularity::tensor || !scheme.symmetric) return false;
  if (scheme.format == Format::int8 && !grouped) {
    const float amax = largest(isa, values, k);
    round_int8(isa, values, k, amax == 0 ? 0 : 127.0f / amax);
    scales[0] = 1;
    factor = amax / 127.0f;
    return true;
  }
  if (scheme.format != Format::e4m3 || (scheme.rule != ScaleRule::amax && scheme.rule != ScaleRule::amax_pow2))
    return false;
  if (!grouped) {
    const float amax = largest(isa, values, k);
    const float scale =
        scheme.amax_limit > 0 ? format::fp8_token_scale(amax, scheme.amax_limit) : format::fp8_token_scale(amax);
    round_e4m3(isa, values, k, scale);
    scales[0] = 1;
    factor = scale;
    return true;
  }
  for (int64_t first = 0, g = 0; first < k; first += scheme.group, ++g) {
    const int64_t count = std::min(scheme.group, k - first);
    const float amax = largest(isa, values + first, count);
    scales[g] =
        scheme.rule == ScaleRule::amax_pow2 ? format::fp8_group_scale_ue8m0(amax) : format::fp8_group_scale(amax);
    round_e4m3(isa, values + first, count, scales[g]);
  }
  factor = 1;
  return true;
}

void put_bf16(const float* values, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<uint16_t>(std::bit_cast<uint32_t>(values[i]) >> 16);
    std::memcpy(out + 2 * i, &code, sizeof code);
  }
}

void put_integers(const WideRecipe& recipe, Isa isa, const float* values, int64_t k, WideRow& row, uint8_t* out) {
  // Symmetric recipes stay within eight bits by themselves.
  if (!recipe.args->weights->spec->scheme.activation->symmetric || recipe.part->input_zero_point != 0) {
    const auto [low, high] = std::minmax_element(values, values + k);
    if (*high > 127) row.shift = static_cast<int32_t>(*high) - 127;
    if (*low < -128) row.shift = static_cast<int32_t>(*low) + 128;
  }
  const bool words = recipe.x == WideX::int16_fours;
  int64_t i = 0;
#if defined(__x86_64__)
  if (vectors(isa)) i = code_vectors(values, k, row.shift, words, out, row.sum);
#endif
  static_cast<void>(isa);
  const int64_t size = wide_x_bytes(recipe.x);
  std::memset(out + i * size, 0, static_cast<size_t>((recipe.columns - i) * size));
  for (; i < k; ++i) {
    const auto code = static_cast<int16_t>(static_cast<int32_t>(values[i]) - row.shift);
    row.sum += code;
    if (words) {
      std::memcpy(out + 2 * i, &code, sizeof code);
    } else {
      out[i] = static_cast<uint8_t>(code);
    }
  }
}

}  // namespace

WideRow ready_wide_row(const WideRecipe& recipe, Isa isa, int64_t index, uint8_t* out, float* scales, float* scratch) {
  const LayerSpec& layer = *recipe.args->weights->spec;
  const int64_t k = layer.k;
  float* values = scratch;
  float* own_scales = scratch + recipe.columns;
  WideRow row;
  load_values(recipe, isa, index, k, values);
  if (quantizes(layer.scheme, recipe.use)) {
    if (!quantize_fast(recipe, isa, values, k, own_scales, row.factor))
      row.factor = quantize_row(layer.scheme, *recipe.part, recipe.use, recipe.tensor_scale, values, k, own_scales);
    const ActivationGroups groups = activation_groups(layer.scheme, k, recipe.use);
    if (recipe.x_scales) {
      std::copy(own_scales, own_scales + groups.count, scales);
    } else if (groups.count > 1 || own_scales[0] != 1) {
      for (int64_t i = 0; i < k; ++i) values[i] *= own_scales[i / groups.group];
    }
  }
  std::fill(values + k, values + recipe.columns, 0.0f);
  switch (recipe.x) {
    case WideX::int8_fours:
    case WideX::int16_fours:
    case WideX::int8_lines:
      put_integers(recipe, isa, values, k, row, out);
      break;
    case WideX::floats:
      std::memcpy(out, values, static_cast<size_t>(recipe.columns) * 4);
      break;
    case WideX::bf16_twos:
    case WideX::bf16_lines:
      if (const float amax = largest(isa, values, k); amax < kTiny && amax > 0) {
        for (int64_t i = 0; i < k; ++i) values[i] *= kLift;
        row.factor /= kLift;
      }
      put_bf16(values, recipe.columns, out);
      break;
  }
  return row;
}

namespace {

// `Bytes` lie together.
template <size_t Bytes>
void interleave(const uint8_t* rows, int64_t row_bytes, int64_t w, int64_t count, uint8_t* to) {
  for (int64_t r = 0; r < w; ++r) {
    const uint8_t* from = rows + r * row_bytes;
    uint8_t* place = to + r * static_cast<int64_t>(Bytes);
    for (int64_t i = 0; i < count; ++i, from += Bytes, place += w * static_cast<int64_t>(Bytes))
      std::memcpy(place, from, Bytes);
  }
}

}  // namespace

void wide_integers(Isa isa, const WideRow& row, const uint8_t* of_codes, float* sums) {
  // Unsigned: parts may leave the range of int32 that the whole is in.
  const uint32_t less = 128u * static_cast<uint32_t>(row.sum);
#if defined(__x86_64__)
  if (vectors(isa)) return integer_vectors(static_cast<int32_t>(less), row.shift, of_codes, sums);
#endif
  static_cast<void>(isa);
  for (int64_t r = 0; r < kWideRows; ++r) {
    uint32_t sum, codes;
    std::memcpy(&sum, sums + r, sizeof sum);
    std::memcpy(&codes, of_codes + 4 * r, sizeof codes);
    sums[r] = static_cast<float>(static_cast<int32_t>(sum - less + static_cast<uint32_t>(row.shift) * codes));
  }
}

void wide_tile(WideX x, const uint8_t* rows, int64_t row_bytes, int64_t w, int64_t k0, int64_t count, uint8_t* to) {
  rows += k0 * wide_x_bytes(x);
  const int64_t step = wide_x_step(x), steps = (count * wide_x_bytes(x) + step - 1) / step;
  if (step == 64) return interleave<64>(rows, row_bytes, w, steps, to);
  step == 8 ? interleave<8>(rows, row_bytes, w, steps, to) : interleave<4>(rows, row_bytes, w, steps, to);
}

bool wide_exact_in_bf16(const Scheme& scheme, ActivationUse use, DType dtype, bool x_scales) {
  if (!quantizes(scheme, use)) return dtype == DType::bf16 && !scheme.pre_scale;
  const ActivationScheme& activation = *scheme.activation;
  return activation.format == Format::e4m3 && (activation.granularity != Granularity::token_group || x_scales);
}

}  // namespace gearshift
