#include "measure/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernel/reference/reference.h"
#include "measure/activations.h"

namespace gearshift {

namespace {

constexpr int64_t all_rows_up_to = 32;

// Sums of squares of one row or column: of the error, of the reference, and of what was allowed.
struct Norms {
  double error = 0, reference = 0, bound = 0;
  double largest = 0;  // |reference|

  void add(double e, double r, double b) {
    error += e * e;
    reference += r * r;
    bound += b * b;
    largest = std::max(largest, std::abs(r));
  }
};

// Below this the output type has too few bits left for a quotient to say anything; the bound per element still decides.
double meaningful(DType dtype) { return dtype == DType::f16 ? 0x1p-14 / 0x1p-11 : 0x1p-126 / 0x1p-24; }

double quotient(double part, double whole) {
  if (part == 0) return 0;
  const double value = std::sqrt(part / whole);
  return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
}

bool quantizes_whole_tensor(const Scheme& scheme) {
  return scheme.activation && scheme.activation->dynamic && scheme.activation->granularity == Granularity::tensor;
}

}  // namespace

std::vector<int64_t> rows_to_judge(int64_t m, uint64_t seed) {
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < std::min(m, all_rows_up_to); ++row) rows.push_back(row);
  if (m <= all_rows_up_to) return rows;
  for (const int64_t row : {int64_t{32}, int64_t{33}, m - 2, m - 1}) {
    if (row < m) rows.push_back(row);
  }
  std::mt19937_64 random(seed);
  for (int64_t octave = all_rows_up_to; octave < m; octave *= 2) {
    for (int i = 0; i < 8; ++i) {
      const int64_t row = octave + static_cast<int64_t>(random() % static_cast<uint64_t>(octave));
      if (row < m) rows.push_back(row);
    }
  }
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return rows;
}

const Judge::Answers& Judge::answers(ActivationUse use, const ConstMatrix& x, const std::vector<int64_t>& rows) {
  // A scale over the whole of x makes every row depend on all others: answers hold for one M only.
  if (quantizes_whole_tensor(weights_.spec->scheme) && rows_of_answers_ != x.rows) answers_.clear();
  rows_of_answers_ = x.rows;
  Answers& known = answers_[use];
  std::vector<int64_t> missing;
  for (const int64_t row : rows) {
    if (known.find(row) == known.end()) missing.push_back(row);
  }
  if (missing.empty()) return known;
  const size_t n = static_cast<size_t>(weights_.spec->n);
  std::vector<double> y(missing.size() * n), magnitude(missing.size() * n);
  reference_rows(weights_, x, missing, use, y.data(), magnitude.data(), threads_);
  for (size_t i = 0; i < missing.size(); ++i) {
    const auto begin = static_cast<std::ptrdiff_t>(i * n), end = static_cast<std::ptrdiff_t>((i + 1) * n);
    known[missing[i]] = {{y.begin() + begin, y.begin() + end}, {magnitude.begin() + begin, magnitude.begin() + end}};
  }
  return known;
}

Comparison Judge::compare(const Kernel& kernel, const ConstMatrix& x, const ConstMatrix& y) {
  Comparison result;
  result.ok = true;
  const LayerSpec& spec = *weights_.spec;
  const std::vector<int64_t> rows = rows_to_judge(x.rows, seed_);
  const bool upgraded = kernel.activation == ActivationUse::float16 && spec.scheme.activation.has_value();
  const Answers& expected = answers(upgraded ? ActivationUse::float16 : ActivationUse::as_checkpoint, x, rows);

  const size_t n = static_cast<size_t>(spec.n);
  Norms whole;
  std::vector<Norms> columns(n);
  const auto raise = [&](const Norms& norms, double& worst) {
    if (norms.largest < meaningful(y.dtype)) return;
    worst = std::max(worst, quotient(norms.error, norms.reference));
    result.tolerance = std::max(result.tolerance, quotient(norms.bound, norms.reference));
  };
  for (const int64_t row : rows) {
    const Answer& answer = expected.at(row);
    const auto* out = static_cast<const uint8_t*>(y.data) + row * y.stride * element_bytes(y.dtype);
    Norms norms;
    for (size_t column = 0; column < n; ++column) {
      const double found = load_element(out, y.dtype, static_cast<int64_t>(column));
      const double wanted = answer.y[column], magnitude = answer.magnitude[column];
      const bool within = within_bound(kernel, spec.k, magnitude, wanted, found, y.dtype);
      const double bound = error_bound(kernel, spec.k, magnitude, wanted, y.dtype);
      if (!within && result.ok) {
        result.ok = false;
        result.failure =
            fmt::format("row {}, column {}: {:g} instead of {:g}, {:.2g} allowed", row, column, found, wanted, bound);
      }
      if (within && std::isinf(found)) {  // the reference is out of range too: no quotient
        ++result.infinite;
        continue;
      }
      norms.add(found - wanted, wanted, bound);
      columns[column].add(found - wanted, wanted, bound);
      whole.add(found - wanted, wanted, bound);
    }
    raise(norms, result.worst_row);
  }
  for (const Norms& norms : columns) raise(norms, result.worst_column);
  result.relative_error = quotient(whole.error, whole.reference);

  if (upgraded) {
    const Answers& asked = answers(ActivationUse::as_checkpoint, x, rows);
    Norms apart;
    for (const int64_t row : rows) {
      const Answer& answer = asked.at(row);
      const auto* out = static_cast<const uint8_t*>(y.data) + row * y.stride * element_bytes(y.dtype);
      for (size_t column = 0; column < n; ++column) {
        const double found = load_element(out, y.dtype, static_cast<int64_t>(column));
        if (std::isfinite(found)) apart.add(found - answer.y[column], answer.y[column], 0);
      }
    }
    result.divergence = quotient(apart.error, apart.reference);
  }
  return result;
}

}  // namespace gearshift
