#include "layer/stored_sizes.h"

#include "base/math.h"

namespace gearshift {

int64_t groups_along_k(const Grouping& grouping, int64_t k) {
  const bool grouped = grouping.kind == Grouping::Kind::group || grouping.kind == Grouping::Kind::block;
  return grouped ? ceil_div(k, grouping.cols) : 1;
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

int64_t zero_point_bytes(const WeightScheme& weight, int64_t n, int64_t k, DType dtype) {
  const int64_t groups = groups_along_k(weight.grouping, k);
  const int code_bits = bits(weight.format);
  switch (weight.storage) {
    case Storage::dense_bits:
    case Storage::word_bits:
      if (dtype != DType::i32) break;
      return (weight.storage == Storage::dense_bits ? ceil_div(n * code_bits, 32) : ceil_div(n, 32 / code_bits)) *
             groups * 4;
    case Storage::gptq_v1:
    case Storage::gptq_v2:
      return groups * ceil_div(n * code_bits, 32) * 4;
    case Storage::awq:
    case Storage::quark_order:
    case Storage::quark_reorder:
      return groups * ceil_div(n, 8) * 4;
    default:
      break;
  }
  return scale_count(weight.grouping, n, k) * (bits(dtype) / 8);
}

}  // namespace gearshift
