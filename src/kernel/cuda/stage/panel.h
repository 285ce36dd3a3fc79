// Weights of a panel of rows written out as 16- or 32-bit floats, and what happens to a product's fp32 sums afterwards.
#pragma once

#include <cstdint>

#include "gearshift/kernel.h"

namespace gearshift::cuda {

// The element of a code_rows layout.
enum class RowCode : uint8_t { bf16, f16, f32, e4m3, e5m2, e2m1, e2m3, e3m2, integer };

struct CodeRowsPanel {
  const uint8_t* codes = nullptr;  // of the first row
  int64_t row_bytes = 0;
  RowCode code = RowCode::bf16;
  const uint8_t* scales = nullptr;  // [rows] of groups; nullptr: left out (1, or applied to the results)
  int64_t scale_row_bytes = 0;
  bool exponents = false;                 // scales are bytes of e8m0, not fp32
  const int16_t* zeros = nullptr;         // [rows, groups]
  const int32_t* index = nullptr;         // [K]: the group of a column
  int64_t groups = 1, group_columns = 0;  // group_columns 0: one group
  int64_t rows = 0, k = 0;
  void* panel = nullptr;  // [rows, columns]; zeros from k on
  int64_t columns = 0;
  bool wide = false;  // f32 instead of bf16
};
bool expand_code_rows(const CodeRowsPanel& args, void* stream);

enum class UnitFormat : uint8_t { nvfp4, mxfp4, int4 };
struct UnitPanel {
  UnitFormat format = UnitFormat::nvfp4;
  int groups = 1;  // int4: scales per row and unit
  bool zeros = false, half_scales = false;
  const uint8_t* units = nullptr;     // first unit of the first slab
  const uint32_t* records = nullptr;  // of the same slabs; mxfp4: their factor goes into the values
  int64_t slabs = 0, units_along_k = 0;
  void* panel = nullptr;  // [slabs * 16, units_along_k * 128]
  bool wide = false;
};
bool expand_units(const UnitPanel& args, void* stream);

// y[m, first + r * step] = sums[m, r] * alpha * token_factor[m] * row_factor[r] + bias[r * bias_stride], rounded once.
struct FinishSums {
  const float* sums = nullptr;
  bool integers = false;  // sums are int32
  int64_t sums_stride = 0, rows = 0, columns = 0;  // rows: at most 65535
  float alpha = 1;
  const float* token_factor = nullptr;
  const float* row_factor = nullptr;
  const float* bias = nullptr;
  int64_t bias_stride = 1;
  void* y = nullptr;
  DType dtype = DType::bf16;  // or f16
  int64_t y_stride = 0, first_column = 0, column_step = 1;
};
bool finish_sums(const FinishSums& args, void* stream);

}  // namespace gearshift::cuda
