#include "measure/activations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "format/bf16.h"
#include "format/e4m3.h"
#include "format/fp16.h"

namespace gearshift {

namespace {

// The finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): a
// counter in, 64 well-mixed bits out, so that any element can be made without those before it.
uint64_t mix(uint64_t counter) {
  counter += 0x9E3779B97F4A7C15u;
  counter = (counter ^ (counter >> 30)) * 0xBF58476D1CE4E5B9u;
  counter = (counter ^ (counter >> 27)) * 0x94D049BB133111EBu;
  return counter ^ (counter >> 31);
}

// The sum of four uniform numbers, scaled to variance 1: normal enough up to 3.4 standard deviations, and cheap.
float nearly_normal(uint64_t bits) {
  int32_t sum = 0;
  for (int shift = 0; shift < 64; shift += 16) sum += static_cast<int32_t>((bits >> shift) & 0xFFFF);
  return static_cast<float>(sum - 2 * 0xFFFF) * (1.7320508f / 65536.0f);
}

float round_to_bf16(float value) { return format::decode_bf16(format::encode_bf16(value)); }

float smallest_normal(DType dtype) { return dtype == DType::f16 ? format::fp16_min_normal : format::bf16_min_normal; }

constexpr int64_t plain_kind = 1;

float value_at(uint64_t row_seed, int64_t kind, int64_t column, DType dtype, float limit) {
  const uint64_t bits = mix(row_seed + static_cast<uint64_t>(column));
  const float plain = nearly_normal(bits);
  switch (kind) {
    case 0:
      return round_to_bf16(std::clamp((bits >> 40) % 64 == 0 ? plain * 100 : plain, -limit, limit));
    case 3:
      return 0;
    case 5:
      return plain * 0.25f * smallest_normal(dtype);
    default:
      return round_to_bf16(std::clamp(plain, -limit, limit));
  }
}

// kind(row): which of the eight.
template <class Kind>
void fill(const Matrix& x, uint64_t seed, [[maybe_unused]] int threads, float limit, const Kind& kind) {
#pragma omp parallel for num_threads(threads) schedule(static) if (x.rows * x.cols > 65536)
  for (int64_t row = 0; row < x.rows; ++row) {
    const uint64_t row_seed = mix(mix(seed) + static_cast<uint64_t>(row));
    auto* out = static_cast<uint8_t*>(x.data) + row * x.stride * element_bytes(x.dtype);
    for (int64_t column = 0; column < x.cols; ++column) {
      store_element(out, x.dtype, column, value_at(row_seed, kind(row), column, x.dtype, limit));
    }
  }
}

}  // namespace

Result<OwnedMatrix> allocate_matrix(DType dtype, int64_t rows, int64_t cols, std::string_view what) {
  const int64_t bytes = rows * cols * element_bytes(dtype);
  OwnedMatrix matrix{AlignedBuffer(static_cast<size_t>(bytes)), dtype, rows, cols};
  if (static_cast<int64_t>(matrix.bytes.size()) == bytes) return matrix;
  ErrorInfo error;
  error.code = ErrorCode::runtime;
  error.subject = std::string(what);
  error.found = "not enough memory";
  error.wanted = fmt::format("{} for {} x {} {}", format_bytes(static_cast<uint64_t>(bytes)), rows, cols, name(dtype));
  error.hint = "smaller batch sizes need less";
  return error;
}

int64_t element_bytes(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

float load_element(const void* row, DType dtype, int64_t i) {
  const auto* bytes = static_cast<const uint8_t*>(row) + i * element_bytes(dtype);
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
  uint16_t code;
  std::memcpy(&code, bytes, sizeof code);
  return dtype == DType::f16 ? format::decode_fp16(code) : format::decode_bf16(code);
}

void store_element(void* row, DType dtype, int64_t i, float value) {
  auto* bytes = static_cast<uint8_t*>(row) + i * element_bytes(dtype);
  if (dtype == DType::f32) {
    std::memcpy(bytes, &value, sizeof value);
    return;
  }
  const uint16_t code = dtype == DType::f16 ? format::encode_fp16(value) : format::encode_bf16(value);
  std::memcpy(bytes, &code, sizeof code);
}

void make_activations(const Matrix& x, uint64_t seed, int threads, float limit) {
  fill(x, seed, threads, limit, [](int64_t row) { return row % 8; });
}

void make_plain_activations(const Matrix& x, uint64_t seed, int threads, float limit) {
  fill(x, seed, threads, limit, [](int64_t) { return plain_kind; });
}

float activation_limit(const LayerWeights& weights) {
  const auto& scheme = weights.spec->scheme.activation;
  float limit = std::numeric_limits<float>::infinity();
  if (!scheme || !scheme->stored_scale) return limit;
  // The largest code; for 4-bit codes times the largest block scale.
  const float largest = scheme->format == Format::e2m1   ? 6.0f * format::e4m3_max
                        : scheme->format == Format::int8 ? 127.0f
                                                         : format::e4m3_max;
  for (const PartWeights& part : weights.parts) {
    limit = std::min(limit, scheme->stored_multiplies ? largest / part.input_scale : largest * part.input_scale);
  }
  return limit;
}

}  // namespace gearshift
