// The frame of CUDA layouts for tensor cores: units of 16 rows x 128 columns with their scales, and a record per row.
//
//   packed: units   [part][slab = ceil(n / 16)][unit = ceil(K / 128)][unit bytes]
//           records [part][slab][16] of {float factor, float bias, int32 column, int32 0}
//   unit, codes of 4 bits: [half of 64 columns][lane of 32][word of 4] uint32, 1024 bytes, then the scales
//           lane = 4 (row % 8) + t; word j belongs to columns 16 j .. 16 j + 15 of the half and holds eight codes,
//           those that this lane needs in the A fragment of mma.m16n8k16 (and of wgmma.m64nNk16, per warp; PTX ISA,
//           "Matrix fragments"):
//             a0 = row r,     columns 2t, 2t + 1        a1 = row r + 8, the same columns
//             a2 = row r,     columns 2t + 8, 2t + 9    a3 = row r + 8, columns 2t + 8, 2t + 9
//           the low 16 bits hold the even column; where a code's bits lie inside them is the format's own (see each
//           layout)
// So a thread reads 16 contiguous bytes for four steps of 16 columns, a warp 512, and a slab is one contiguous stream.
// What lies past the end of a part or of K has codes and scales 0; records there have column -1.
// A result is factor * sum + bias and belongs to column `column` of y; factor holds tensor-wide scales and what the
// coding of a unit's scales leaves over.
#pragma once

#include <cstring>

#include "base/math.h"
#include "gearshift/kernel.h"
#include "kernel/output.h"
#include "kernel/parts.h"

namespace gearshift {

inline constexpr int64_t kUnitRows = 16;
inline constexpr int64_t kUnitColumns = 128;
inline constexpr int64_t kUnitCodeBytes = 1024;

struct RowRecord {
  float factor = 0;
  float bias = 0;
  int32_t column = -1;
  int32_t zero = 0;
};

inline int64_t slabs_of_part(int64_t n) { return ceil_div(n, kUnitRows); }
inline int64_t slabs_of(const LayerSpec& layer) {
  int64_t slabs = 0;
  for (size_t part = 0; part < part_count(layer); ++part) slabs += slabs_of_part(part_rows(layer, part));
  return slabs;
}
inline int64_t units_along(int64_t k) { return ceil_div(k, kUnitColumns); }
// Where the records begin; a multiple of 16.
inline int64_t rows16_records_at(const LayerSpec& layer, int64_t unit_bytes) {
  return slabs_of(layer) * units_along(layer.k) * unit_bytes;
}
inline int64_t rows16_bytes(const LayerSpec& layer, int64_t unit_bytes) {
  return rows16_records_at(layer, unit_bytes) + slabs_of(layer) * kUnitRows * static_cast<int64_t>(sizeof(RowRecord));
}

// Where the code at (row, column) of a unit lies: byte offset of its word, register a0..a3, and half of the word.
struct CodePlace {
  int64_t word;  // byte offset in the unit
  int reg;
  int half;
};
inline CodePlace place_in_unit(int64_t row, int64_t column) {
  const int64_t in_step = column % 16;
  const int64_t lane = 4 * (row % 8) + in_step % 8 / 2;
  const int64_t half64 = column / 64, step = column % 64 / 16;
  return {half64 * 512 + lane * 16 + step * 4, static_cast<int>(row / 8 + 2 * (in_step / 8)),
          static_cast<int>(in_step % 2)};
}

// Calls `pack_unit(part, slab row, unit, out)` for every unit, and writes the records; `factor(part, row)`.
template <class PackUnit, class Factor>
void pack_rows16(const LayerWeights& weights, uint8_t* out, int64_t unit_bytes, [[maybe_unused]] int threads,
                 const PackUnit& pack_unit, const Factor& factor) {
  const LayerSpec& layer = *weights.spec;
  const int64_t units = units_along(layer.k);
  auto* record = reinterpret_cast<RowRecord*>(out + rows16_records_at(layer, unit_bytes));
  for (size_t p = 0; p < weights.parts.size(); ++p) {
    const PartWeights& part = weights.parts[p];
    const int64_t slabs = slabs_of_part(part.n);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t slab = 0; slab < slabs; ++slab) {
      for (int64_t unit = 0; unit < units; ++unit) {
        uint8_t* at = out + (slab * units + unit) * unit_bytes;
        std::memset(at, 0, static_cast<size_t>(unit_bytes));
        pack_unit(p, slab * kUnitRows, unit, at);
      }
      for (int64_t r = 0; r < kUnitRows; ++r) {
        const int64_t row = slab * kUnitRows + r;
        RowRecord made;
        if (row < part.n) {
          made = {factor(p, row), static_cast<float>(bias_value(part, row)),
                  static_cast<int32_t>(output_column(weights, p, row)), 0};
        }
        std::memcpy(record + row, &made, sizeof made);
      }
    }
    out += slabs * units * unit_bytes;
    record += slabs * kUnitRows;
  }
}

// Calls `visit(part, row in part, row in slab, first unit of the row's slab)` for every row of the layer, in order.
template <class Visit>
void visit_rows16(const LayerSpec& layer, const uint8_t* packed, int64_t unit_bytes, const Visit& visit) {
  for (size_t part = 0; part < part_count(layer); ++part) {
    const int64_t n = part_rows(layer, part);
    for (int64_t row = 0; row < n; ++row)
      visit(part, row, row % kUnitRows, packed + row / kUnitRows * units_along(layer.k) * unit_bytes);
    packed += slabs_of_part(n) * units_along(layer.k) * unit_bytes;
  }
}

}  // namespace gearshift
