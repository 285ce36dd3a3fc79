#include "kernel/reference/decode.h"

#include <cstring>

#include "base/math.h"
#include "format/bf16.h"
#include "format/e2m1.h"
#include "format/e2m3.h"
#include "format/e3m2.h"
#include "format/e4m3.h"
#include "format/e5m2.h"
#include "format/e8m0.h"
#include "format/fp16.h"
#include "format/int4.h"

namespace gearshift {

namespace {

template <class T>
T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float load_float(const uint8_t* base, int64_t index, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return static_cast<float>(load<double>(base + index * 8));
    case DType::f32:
      return load<float>(base + index * 4);
    case DType::bf16:
      return format::decode_bf16(load<uint16_t>(base + index * 2));
    case DType::f16:
      return format::decode_fp16(load<uint16_t>(base + index * 2));
    case DType::f8_e4m3:
      return format::e4m3_table[base[index]];
    case DType::f8_e8m0:
    case DType::u8:
      return format::e8m0_table[base[index]];
    default:
      return 0;
  }
}

// `bits` bits from `position` on of a little-endian stream; never reads a byte that holds none of them.
uint32_t stream_bits(const uint8_t* base, int64_t position, int bits) {
  const uint8_t* at = base + (position >> 3);
  const int shift = static_cast<int>(position & 7);
  uint32_t value = *at;
  if (shift + bits > 8) value |= static_cast<uint32_t>(at[1]) << 8;
  return (value >> shift) & ((1u << bits) - 1);
}

// The same from a stream made of every `stride`-th int32 word.
uint32_t strided_bits(const uint8_t* base, int64_t stride, int64_t position, int bits) {
  const int64_t word = position >> 5;
  const int shift = static_cast<int>(position & 31);
  uint64_t value = load<uint32_t>(base + word * stride * 4);
  if (shift + bits > 32) value |= static_cast<uint64_t>(load<uint32_t>(base + (word + 1) * stride * 4)) << 32;
  return static_cast<uint32_t>(value >> shift) & ((1u << bits) - 1);
}

uint32_t word_bits(const uint8_t* base, int64_t stride, int64_t index, int bits) {
  const int per_word = 32 / bits;
  const uint32_t word = load<uint32_t>(base + index / per_word * stride * 4);
  return (word >> (index % per_word * bits)) & ((1u << bits) - 1);
}

// AWQ: column 8c + j of a word sits in nibble kAwqNibble[j].
constexpr int kAwqNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

uint32_t nibble_of_word(const uint8_t* base, int64_t row, int64_t words, int64_t column, bool interleaved) {
  const uint32_t word = load<uint32_t>(base + (row * words + column / 8) * 4);
  const int nibble = interleaved ? kAwqNibble[column % 8] : static_cast<int>(column % 8);
  return (word >> (4 * nibble)) & 15;
}

// Scales and zero points of these lie [G,N]; everywhere else [N,G].
bool groups_first(Storage storage) {
  switch (storage) {
    case Storage::gptq_v1:
    case Storage::gptq_v2:
    case Storage::awq:
    case Storage::quark_order:
    case Storage::quark_reorder:
      return true;
    default:
      return false;
  }
}

bool explicit_zero(Format format) { return format >= Format::uint2 && format <= Format::uint8; }

// Values of float codes by code; nullptr for integers.
const float* value_table(Format format) {
  switch (format) {
    case Format::e4m3:
      return format::e4m3_table.data();
    case Format::e5m2:
      return format::e5m2_table.data();
    case Format::e2m1:
      return format::e2m1_table.data();
    case Format::e2m3:
      return format::e2m3_table.data();
    case Format::e3m2:
      return format::e3m2_table.data();
    default:
      return nullptr;
  }
}

int64_t groups_of(const Grouping& grouping, const PartWeights& part, int64_t k) {
  if (part.tile_cols > 0) return part.tile_cols;
  const bool grouped = grouping.kind == Grouping::Kind::group || grouping.kind == Grouping::Kind::block;
  return grouped ? ceil_div(part.tile_col + k, grouping.cols) : 1;
}

}  // namespace

StoredWeights::StoredWeights(const LayerWeights& weights, size_t part)
    : part_(&weights.parts[part]),
      scheme_(&weights.spec->scheme.weight),
      quantized_(weights.spec->scheme.quantized),
      k_(weights.spec->k),
      groups_(quantized_ ? groups_of(scheme_->grouping, *part_, k_) : 1),
      bits_(quantized_ ? bits(scheme_->format) : 0),
      indexed_(!part_->group_index.empty()) {}

uint32_t StoredWeights::code_bits(int64_t n, int64_t k) const {
  const uint8_t* base = part_->weight.data();
  switch (scheme_->storage) {
    case Storage::dense:
      return base[n * k_ + k];
    case Storage::dense_transposed:
      return base[k * part_->n + n];
    case Storage::nibbles:
      return (base[n * ceil_div(k_, 2) + k / 2] >> (k % 2 * 4)) & 15u;
    case Storage::dense_bits:
      return stream_bits(base + n * ceil_div(k_ * bits_, 32) * 4, k * bits_, bits_);
    case Storage::word_bits:
      return word_bits(base + n * ceil_div(k_, 32 / bits_) * 4, 1, k, bits_);
    case Storage::gptq_v1:
    case Storage::gptq_v2:
      return strided_bits(base + n * 4, part_->n, k * bits_, bits_);
    case Storage::awq:
    case Storage::quark_reorder:
      return nibble_of_word(base, k, ceil_div(part_->n, 8), n, true);
    case Storage::quark_order:
      return nibble_of_word(base, k, ceil_div(part_->n, 8), n, false);
    case Storage::rows_in_byte:
      return (base[n / 2 * k_ + k] >> (n % 2 * 4)) & 15u;
    case Storage::fp6_bytes:
      return stream_bits(base + n * ceil_div(k_ * 6, 8), k * 6, 6);
  }
  return 0;
}

void StoredWeights::code_row(int64_t n, uint8_t* out) const {
  const bool stream = scheme_->storage == Storage::dense_bits;
  if (scheme_->storage != Storage::nibbles && !(stream && bits_ == 4)) {
    for (int64_t i = 0; i < k_; ++i) out[i] = static_cast<uint8_t>(code_bits(n, i));
    return;
  }
  const int64_t stride = stream ? ceil_div(k_ * 4, 32) * 4 : ceil_div(k_, 2);
  const uint8_t* row = part_->weight.data() + n * stride;
  for (int64_t i = 0; i + 1 < k_; i += 2) {
    out[i] = row[i / 2] & 15;
    out[i + 1] = row[i / 2] >> 4;
  }
  if (k_ % 2 != 0) out[k_ - 1] = row[k_ / 2] & 15;
}

void StoredWeights::read_values(int64_t n, int64_t k0, int64_t count, float* out) const {
  if (!quantized_ || scheme_->format == Format::float_) {
    const bool transposed = scheme_->storage == Storage::dense_transposed;
    const int64_t first = transposed ? k0 * part_->n + n : n * k_ + k0;
    const int64_t step = transposed ? part_->n : 1;
    for (int64_t i = 0; i < count; ++i) {
      out[i] = load_float(part_->weight.data(), first + i * step, part_->weight_dtype);
    }
    return;
  }
  const float* table = value_table(scheme_->format);
  if (table != nullptr && scheme_->storage == Storage::dense) {
    const uint8_t* row = part_->weight.data() + n * k_ + k0;
    for (int64_t i = 0; i < count; ++i) out[i] = table[row[i]];
    return;
  }
  if (table != nullptr) {
    for (int64_t i = 0; i < count; ++i) out[i] = table[code_bits(n, k0 + i)];
    return;
  }
  // compressed-tensors' bit streams hold q + 2^(b-1); GPTQ, AWQ and AutoRound an unsigned q; all others two's
  // complement.
  const bool offset = scheme_->storage == Storage::dense_bits || scheme_->storage == Storage::word_bits;
  const bool as_is = explicit_zero(scheme_->format) && !offset;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t code = code_bits(n, k0 + i);
    out[i] = static_cast<float>(offset  ? format::int_from_offset(code, bits_)
                                : as_is ? static_cast<int32_t>(code)
                                        : format::int_from_twos_complement(code, bits_));
  }
}

int32_t StoredWeights::zero_point(int64_t n, int64_t group) const {
  const bool offset = scheme_->storage == Storage::dense_bits || scheme_->storage == Storage::word_bits;
  // Symmetric weights ignore a stored zero point: it can only repeat what is known, or be off by one.
  if (scheme_->symmetric || part_->zero_point.empty()) {
    return explicit_zero(scheme_->format) && !offset ? 1 << (bits_ - 1) : 0;
  }
  const uint8_t* base = part_->zero_point.data();
  const int64_t rows = part_->n;
  switch (scheme_->storage) {
    case Storage::dense_bits:
    case Storage::word_bits: {
      if (part_->zero_point_dtype != DType::i32) break;  // one a byte
      // [cd(N*b,32), G], packed along N with the codes' own rule
      const uint32_t code = scheme_->storage == Storage::dense_bits
                                ? strided_bits(base + group * 4, groups_, n * bits_, bits_)
                                : word_bits(base + group * 4, groups_, n, bits_);
      return format::int_from_offset(code, bits_);
    }
    case Storage::gptq_v1:
    case Storage::gptq_v2: {
      const int64_t words = ceil_div(rows * bits_, 32);
      const uint32_t stored = strided_bits(base + group * words * 4, 1, n * bits_, bits_);
      return static_cast<int32_t>(stored) + (scheme_->storage == Storage::gptq_v1 ? 1 : 0);
    }
    case Storage::awq:
    case Storage::quark_reorder:
    case Storage::quark_order: {
      const bool interleaved = scheme_->storage != Storage::quark_order;
      const uint32_t code = nibble_of_word(base, group, ceil_div(rows, 8), n, interleaved);
      return explicit_zero(scheme_->format) ? static_cast<int32_t>(code)
                                            : format::int_from_twos_complement(code, bits_);
    }
    default:
      break;
  }
  const int64_t index = scale_index(n, group);
  if (part_->zero_point_dtype == DType::i32) return load<int32_t>(base + index * 4);
  return part_->zero_point_dtype == DType::u8 ? static_cast<int32_t>(base[index]) : static_cast<int8_t>(base[index]);
}

void StoredWeights::codes(int64_t n, int64_t k0, int64_t count, float* out) const {
  read_values(n, k0, count, out);
  if (!quantized_ || value_table(scheme_->format) != nullptr || scheme_->format == Format::float_) return;
  for (int64_t i = 0; i < count;) {
    const int64_t run = run_of_group(k0 + i, count - i);
    const auto zero = static_cast<float>(zero_point(n, group_of(k0 + i)));
    for (const int64_t end = i + run; i < end; ++i) out[i] -= zero;
  }
}

int64_t StoredWeights::scale_index(int64_t n, int64_t group) const {
  switch (scheme_->grouping.kind) {
    case Grouping::Kind::tensor:
      return 0;
    case Grouping::Kind::row:
    case Grouping::Kind::whole_row:
      return n;
    case Grouping::Kind::group:
      return groups_first(scheme_->storage) ? group * part_->n + n : n * groups_ + group;
    case Grouping::Kind::block:
      return (part_->tile_row + n) / scheme_->grouping.rows * groups_ + group;
  }
  return 0;
}

float StoredWeights::scale(int64_t n, int64_t group) const {
  if (!quantized_ || part_->scale.empty()) return 1;
  return load_float(part_->scale.data(), scale_index(n, group), part_->scale_dtype);
}

int64_t StoredWeights::group_of(int64_t k) const {
  if (groups_ == 1) return 0;
  return indexed_ ? load<int32_t>(part_->group_index.data() + k * 4) : (part_->tile_col + k) / scheme_->grouping.cols;
}

int64_t StoredWeights::run_of_group(int64_t k, int64_t limit) const {
  if (groups_ == 1) return limit;
  if (indexed_) return 1;
  const int64_t rest = scheme_->grouping.cols - (part_->tile_col + k) % scheme_->grouping.cols;
  return rest < limit ? rest : limit;
}

bool StoredWeights::one_scale_a_row() const { return groups_ == 1; }

double StoredWeights::factor() const {
  if (!quantized_ || !scheme_->global_scale) return 1;
  const double global = part_->weight_global;
  return scheme_->global_divides ? 1 / global : global;
}

void decode_row(const StoredWeights& weights, int64_t n, float* scratch, double* out) {
  const int64_t k = weights.k();
  weights.codes(n, 0, k, scratch);
  const double factor = weights.factor();
  for (int64_t i = 0; i < k;) {
    const int64_t run = weights.run_of_group(i, k - i);
    const double scale = weights.scale(n, weights.group_of(i)) * factor;
    for (const int64_t end = i + run; i < end; ++i) out[i] = scratch[i] * scale;
  }
}

}  // namespace gearshift
