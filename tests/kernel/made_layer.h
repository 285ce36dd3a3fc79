// Layers made of random codes, for tests of kernels: the codes are kept beside the bytes, so that what a decoder reads
// can be held against what was written. The packer here shares nothing with the library: it places single bits.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <random>

#include "format/bf16.h"
#include "format/e2m1.h"
#include "format/e2m3.h"
#include "format/e3m2.h"
#include "format/e4m3.h"
#include "format/e5m2.h"
#include "format/fp16.h"
#include "gearshift/kernel.h"

namespace gearshift::testing {

inline int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct Named {
  const char* name;
  Family family;
  Scheme scheme;
  DType weight_dtype = DType::bf16;  // of float weights
  int64_t n_multiple = 1, k_multiple = 1;
};

inline bool is_word_stream(Storage s) { return s == Storage::dense_bits || s == Storage::word_bits; }
inline bool is_gptq(Storage s) { return s == Storage::gptq_v1 || s == Storage::gptq_v2; }
inline bool is_awq_like(Storage s) {
  return s == Storage::awq || s == Storage::quark_order || s == Storage::quark_reorder;
}
inline bool is_uint(Format f) { return f >= Format::uint2 && f <= Format::uint8; }
inline bool is_int(Format f) { return f >= Format::int2; }

// Address, in bits, of bit t of the code at (n, k).
inline int64_t bit_address(Storage storage, int b, int64_t N, int64_t K, int64_t n, int64_t k, int64_t t) {
  static constexpr int awq_nibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  switch (storage) {
    case Storage::dense:
      return (n * K + k) * 8 + t;
    case Storage::dense_transposed:
      return (k * N + n) * 8 + t;
    case Storage::nibbles:
      return n * up(K, 2) * 8 + k * 4 + t;
    case Storage::dense_bits:
      return n * up(K * b, 32) * 32 + k * b + t;
    case Storage::word_bits:
      return (n * up(K, 32 / b) + k / (32 / b)) * 32 + k % (32 / b) * b + t;
    case Storage::gptq_v1:
    case Storage::gptq_v2:
      return ((k * b + t) / 32 * N + n) * 32 + (k * b + t) % 32;
    case Storage::awq:
    case Storage::quark_reorder:
      return (k * up(N, 8) + n / 8) * 32 + awq_nibble[n % 8] * 4 + t;
    case Storage::quark_order:
      return (k * up(N, 8) + n / 8) * 32 + n % 8 * 4 + t;
    case Storage::rows_in_byte:
      return (n / 2 * K + k) * 8 + n % 2 * 4 + t;
    case Storage::fp6_bytes:
      return n * up(K * 6, 8) * 8 + k * 6 + t;
  }
  return 0;
}

// Address of bit t of the zero point of row n, group g.
inline int64_t zero_address(Storage storage, int b, int64_t N, int64_t G, int64_t n, int64_t g, int64_t t) {
  if (storage == Storage::dense_bits) return ((n * b + t) / 32 * G + g) * 32 + (n * b + t) % 32;
  if (storage == Storage::word_bits) return (n / (32 / b) * G + g) * 32 + n % (32 / b) * b + t;
  if (is_gptq(storage)) return g * up(N * b, 32) * 32 + n * b + t;
  if (is_awq_like(storage)) return bit_address(storage, 4, N, G, n, g, t);
  return (n * G + g) * 8 + t;
}

inline void put(std::vector<uint8_t>& bytes, int64_t bit, bool value) {
  const auto at = static_cast<size_t>(bit / 8);
  if (at >= bytes.size()) bytes.resize(at + 1);
  if (value) bytes[at] = static_cast<uint8_t>(bytes[at] | 1 << (bit % 8));
}

class MadeLayer {
 public:
  LayerSpec spec;
  LayerWeights weights;
  // Per part: code values in units of the scale, minus zero point [n,K]; scales [n,G] by the group of each column.
  std::vector<std::vector<float>> values;
  std::vector<std::vector<float>> scales;

  MadeLayer(const Named& named, const std::vector<int64_t>& rows, int64_t k, uint64_t seed, bool bias = false)
      : random_(seed) {
    spec.name = named.name;
    spec.family = named.family;
    spec.scheme = named.scheme;
    spec.k = k;
    spec.bias = bias;
    for (int64_t n : rows) {
      spec.n += n;
      spec.modules.push_back({"part", n, {{TensorRole::weight, "weight", named.weight_dtype, {n, k}}}});
    }
    weights.spec = &spec;
    for (int64_t n : rows) make_part(named, n, k, bias);
  }
  MadeLayer(const MadeLayer&) = delete;
  MadeLayer& operator=(const MadeLayer&) = delete;

  // Weight in float64 by the definition of the scheme.
  double weight(size_t part, int64_t n, int64_t k) const {
    const WeightScheme& w = spec.scheme.weight;
    const size_t at = static_cast<size_t>(n * spec.k + k);
    double value = values[part][at];
    if (!spec.scheme.quantized) return value;
    value *= scales[part][at];
    if (w.global_scale) {
      const double global = weights.parts[part].weight_global;
      value = w.global_divides ? value / global : value * global;
    }
    return value;
  }

 private:
  using Bytes = std::vector<uint8_t>;

  Bytes& keep() {
    kept_.push_back(std::make_unique<Bytes>());
    return *kept_.back();
  }
  double uniform(double low, double high) { return std::uniform_real_distribution<double>(low, high)(random_); }
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }

  // Writes value as dtype, returns what was written.
  static float put_float(Bytes& bytes, DType dtype, size_t index, float value) {
    uint32_t word = 0;
    size_t size = 2;
    if (dtype == DType::bf16) {
      word = format::encode_bf16(value);
      value = format::decode_bf16(static_cast<uint16_t>(word));
    } else if (dtype == DType::f16) {
      word = format::encode_fp16(value);
      value = format::decode_fp16(static_cast<uint16_t>(word));
    } else if (dtype == DType::f8_e4m3) {
      size = 1;
      word = format::encode_e4m3(value);
      value = format::decode_e4m3(static_cast<uint8_t>(word));
    } else if (dtype == DType::f8_e8m0) {
      size = 1;
      const int exponent = static_cast<int>(std::lround(std::log2(std::fabs(value))));
      word = static_cast<uint32_t>(exponent + 127);
      value = std::ldexp(1.0f, exponent);
    } else {
      size = 4;
      word = std::bit_cast<uint32_t>(value);
    }
    if (bytes.size() < (index + 1) * size) bytes.resize((index + 1) * size);
    for (size_t i = 0; i < size; ++i) bytes[index * size + i] = static_cast<uint8_t>(word >> (8 * i));
    return value;
  }

  static float code_value(Format format, uint32_t code) {
    switch (format) {
      case Format::e4m3:
        return format::decode_e4m3(static_cast<uint8_t>(code));
      case Format::e5m2:
        return format::decode_e5m2(static_cast<uint8_t>(code));
      case Format::e2m1:
        return format::decode_e2m1(static_cast<uint8_t>(code));
      case Format::e2m3:
        return format::decode_e2m3(static_cast<uint8_t>(code));
      default:
        return format::decode_e3m2(static_cast<uint8_t>(code));
    }
  }

  void make_part(const Named& named, int64_t n, int64_t k, bool bias) {
    weights.parts.emplace_back();
    PartWeights& part = weights.parts.back();
    part.n = n;
    values.emplace_back(static_cast<size_t>(n * k));
    scales.emplace_back(static_cast<size_t>(n * k), 1.0f);
    if (bias) {
      Bytes& bytes = keep();
      part.bias_dtype = DType::bf16;
      for (int64_t i = 0; i < n; ++i)
        put_float(bytes, DType::bf16, static_cast<size_t>(i), static_cast<float>(uniform(-2, 2)));
      part.bias = bytes;
    }
    if (!spec.scheme.quantized) {
      Bytes& bytes = keep();
      part.weight_dtype = named.weight_dtype;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < k; ++j) {
          const bool transposed = spec.scheme.weight.storage == Storage::dense_transposed;
          values.back()[static_cast<size_t>(i * k + j)] =
              put_float(bytes, named.weight_dtype, static_cast<size_t>(transposed ? j * n + i : i * k + j),
                        static_cast<float>(uniform(-1, 1)));
        }
      }
      part.weight = bytes;
      return;
    }
    make_quantized(part, n, k);
    if (spec.scheme.pre_scale) {
      Bytes& bytes = keep();
      for (int64_t i = 0; i < k; ++i)
        put_float(bytes, DType::bf16, static_cast<size_t>(i), static_cast<float>(uniform(0.5, 2)));
      part.pre_scale = bytes;
      part.pre_scale_dtype = DType::bf16;
    }
  }

  void make_quantized(PartWeights& part, int64_t n, int64_t k) {
    const WeightScheme& w = spec.scheme.weight;
    const int b = bits(w.format);
    const Grouping& grouping = w.grouping;
    const bool grouped = grouping.kind == Grouping::Kind::group || grouping.kind == Grouping::Kind::block;
    const int64_t groups = grouped ? up(k, grouping.cols) : 1;
    std::vector<int32_t> group(static_cast<size_t>(k), 0);
    for (int64_t i = 0; i < k && grouped; ++i) group[static_cast<size_t>(i)] = static_cast<int32_t>(i / grouping.cols);
    if (w.act_order) {
      std::shuffle(group.begin(), group.end(), random_);
      Bytes& bytes = keep();
      for (int32_t g : group) {
        for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(g >> (8 * i)));
      }
      part.group_index = bytes;
    }

    // Scales: stored [N,G], [G,N] or [blocks of N, G].
    const bool groups_first = is_gptq(w.storage) || is_awq_like(w.storage);
    Bytes& scale_bytes = keep();
    const int64_t scale_rows = grouping.kind == Grouping::Kind::tensor  ? 1
                               : grouping.kind == Grouping::Kind::block ? up(n, grouping.rows)
                                                                        : n;
    std::vector<float> scale(static_cast<size_t>(scale_rows * groups));
    for (int64_t r = 0; r < scale_rows; ++r) {
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t at = groups_first ? g * scale_rows + r : r * groups + g;
        const double drawn = w.scale == DType::f8_e4m3 ? uniform(0.002, 448) : uniform(0.01, 0.2);
        scale[static_cast<size_t>(r * groups + g)] =
            put_float(scale_bytes, w.scale, static_cast<size_t>(at), static_cast<float>(drawn));
      }
    }
    part.scale = scale_bytes;
    part.scale_dtype = w.scale;
    const auto scale_row = [&](int64_t r) {
      return grouping.kind == Grouping::Kind::tensor  ? 0
             : grouping.kind == Grouping::Kind::block ? r / grouping.rows
                                                      : r;
    };

    // Zero points, in the codes' own meaning of numbers.
    std::vector<int32_t> zero(static_cast<size_t>(n * groups), 0);
    if (!w.symmetric) {
      Bytes& bytes = keep();
      const bool packed = is_word_stream(w.storage) || is_gptq(w.storage) || is_awq_like(w.storage);
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t g = 0; g < groups; ++g) {
          const auto code = static_cast<uint32_t>(below(int64_t{1} << b));
          for (int t = 0; t < b; ++t) put(bytes, zero_address(w.storage, b, n, groups, r, g, t), (code >> t & 1) != 0);
          const auto shift = w.storage == Storage::gptq_v1 ? 1 : 0;
          zero[static_cast<size_t>(r * groups + g)] = meaning(code, b) + shift;
        }
      }
      bytes.resize(static_cast<size_t>(up(static_cast<int64_t>(bytes.size()), 4) * 4));
      part.zero_point = bytes;
      part.zero_point_dtype = packed ? DType::i32 : DType::i8;
    } else if (is_uint(w.format)) {
      std::fill(zero.begin(), zero.end(), 1 << (b - 1));
    }

    Bytes& bytes = keep();
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t i = 0; i < k; ++i) {
        auto code = static_cast<uint32_t>(below(int64_t{1} << b));
        if (w.format == Format::e4m3 && (code & 0x7f) == 0x7f) code ^= 1;
        if (w.format == Format::e5m2 && (code & 0x7f) >= 0x60) code &= 0x9f;
        for (int t = 0; t < (w.storage == Storage::dense ? 8 : b); ++t) {
          // Two's complement fills its byte.
          const bool bit =
              t < b ? (code >> t & 1) != 0 : !is_uint(w.format) && is_int(w.format) && (code >> (b - 1) & 1) != 0;
          put(bytes, bit_address(w.storage, b, n, k, r, i, t), bit);
        }
        const auto at = static_cast<size_t>(r * k + i);
        const int64_t g = group[static_cast<size_t>(i)];
        values.back()[at] = is_int(w.format)
                                ? static_cast<float>(meaning(code, b) - zero[static_cast<size_t>(r * groups + g)])
                                : code_value(w.format, code);
        scales.back()[at] = scale[static_cast<size_t>(scale_row(r) * groups + g)];
      }
    }
    bytes.resize(static_cast<size_t>(up(static_cast<int64_t>(bytes.size()), 4) * 4));
    part.weight = bytes;
    part.weight_global = static_cast<float>(w.global_divides ? uniform(1000, 9000) : uniform(1e-4, 1e-3));
    if (spec.scheme.activation && spec.scheme.activation->stored_scale) {
      const ActivationScheme& a = *spec.scheme.activation;
      const bool nvfp4 = a.format == Format::e2m1;
      part.input_scale = static_cast<float>(a.stored_multiplies ? uniform(300, 900)
                                            : nvfp4             ? uniform(1e-3, 3e-3)
                                                                : uniform(0.01, 0.05));
      if (!a.symmetric) part.input_zero_point = static_cast<int32_t>(below(64)) - 32;
    }
  }

  int32_t meaning(uint32_t code, int b) const {
    const WeightScheme& w = spec.scheme.weight;
    const auto value = static_cast<int32_t>(code);
    if (is_word_stream(w.storage)) return value - (1 << (b - 1));
    if (is_uint(w.format)) return value;
    return (value >> (b - 1) & 1) != 0 ? value - (1 << b) : value;
  }

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Bytes>> kept_;
};

}  // namespace gearshift::testing
