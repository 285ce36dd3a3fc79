#include "quantize/matrix.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "quantize/widen.h"

namespace gearshift::quantize_detail {
namespace {

struct RowSums {
  double error = 0, original = 0, back = 0, product = 0;
};

RowSums compare(const float* w, const float* v, int64_t count) {
  RowSums sums;
  for (int64_t i = 0; i < count; ++i) {
    const double a = w[i], b = v[i];
    sums.error += (a - b) * (a - b);
    sums.original += a * a;
    sums.back += b * b;
    sums.product += a * b;
  }
  return sums;
}

// |error| / |original|; an error where the original is zero counts whole.
double relative(const RowSums& sums) {
  if (sums.error == 0) return 0;
  return sums.original == 0 ? 1 : std::sqrt(sums.error / sums.original);
}

std::string position(const Shape& shape, int64_t flat) {
  Shape at(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = flat % shape[d];
    flat /= shape[d];
  }
  return to_string(at);
}

}  // namespace

Result<float> finite_amax(const std::string& name, DType dtype, const Shape& shape, ByteView bytes) {
  const int64_t size = bits(dtype) / 8, count = static_cast<int64_t>(bytes.size()) / size;
  float amax = 0;
  int64_t bad = count;  // first element that is no finite number
#pragma omp parallel for reduction(max : amax) reduction(min : bad) schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const float value = std::fabs(load_float(bytes.data() + i * size, dtype));
    if (std::isfinite(value)) {
      amax = std::max(amax, value);
    } else {
      bad = std::min(bad, i);
    }
  }
  if (bad < count) {
    const bool nan = std::isnan(load_float(bytes.data() + bad * size, dtype));
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     name,
                     std::string(nan ? "NaN" : "infinity") + " at element " + position(shape, bad),
                     "finite numbers",
                     "",
                     {}};
  }
  return amax;
}

WeightError encode_matrix(const Recipe& recipe, const ModuleFacts& facts, ByteView bytes,
                          std::span<uint8_t* const> out) {
  const int64_t n = facts.n, k = facts.k, step = recipe.panel_rows;
  const int64_t row_bytes = k * (bits(facts.stored) / 8), panels = (n + step - 1) / step;
  std::vector<RowSums> rows(static_cast<size_t>(n));
  recipe.scalars(facts, out);
#pragma omp parallel
  {
    const auto elements = static_cast<size_t>(std::min(step, n) * k);
    const auto w = std::make_unique<float[]>(elements), v = std::make_unique<float[]>(elements);
#pragma omp for schedule(dynamic, 4)
    for (int64_t p = 0; p < panels; ++p) {
      const Panel panel{facts, p * step, std::min(step, n - p * step), w.get()};
      widen(bytes.data() + panel.row * row_bytes, facts.stored, panel.rows * k, w.get());
      recipe.encode(panel, out, v.get());
      for (int64_t r = 0; r < panel.rows; ++r) {
        rows[static_cast<size_t>(panel.row + r)] = compare(w.get() + r * k, v.get() + r * k, k);
      }
    }
  }
  // Summed in row order, so that the numbers do not depend on the number of threads.
  RowSums all;
  WeightError result;
  for (const RowSums& row : rows) {
    result.worst_row = std::max(result.worst_row, relative(row));
    all = {all.error + row.error, all.original + row.original, all.back + row.back, all.product + row.product};
  }
  result.relative = relative(all);
  const double norms = std::sqrt(all.original) * std::sqrt(all.back);
  result.cosine = norms > 0 ? all.product / norms : all.error == 0 ? 1 : 0;
  return result;
}

}  // namespace gearshift::quantize_detail
