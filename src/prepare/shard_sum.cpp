#include "prepare/shard_sum.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <random>

#include "kernel/parts.h"
#include "kernel/reference/reference.h"

namespace gearshift {

namespace {

constexpr int64_t sampled_rows = 2;
// Of the sum of magnitudes: float64 sums in another order differ by much less, a wrong weight by much more.
constexpr double order_of_sums = 1e-12;

}  // namespace

ShardSum::ShardSum(const LayerWeights& whole, uint64_t seed, int threads) : whole_(whole), threads_(threads) {
  const LayerSpec& layer = *whole.spec;
  x_.resize(static_cast<size_t>(sampled_rows * layer.k));
  std::mt19937_64 random(seed);
  for (float& value : x_) value = std::uniform_real_distribution<float>(-2, 2)(random);
  wanted_ = multiply(whole, x_);
  sum_.resize(wanted_.y.size());
}

ShardSum::Product ShardSum::multiply(const LayerWeights& weights, const std::vector<float>& x) const {
  const LayerSpec& layer = *weights.spec;
  std::vector<int64_t> all(static_cast<size_t>(sampled_rows));
  std::iota(all.begin(), all.end(), 0);
  Product product;
  product.y.resize(static_cast<size_t>(sampled_rows * layer.n));
  product.magnitude.resize(product.y.size());
  reference_rows(weights, {x.data(), DType::f32, sampled_rows, layer.k, layer.k}, all, ActivationUse::float16,
                 product.y.data(), product.magnitude.data(), threads_);
  return product;
}

void ShardSum::add(const CutWeights& shard, int64_t rank) {
  const LayerSpec &own = shard.spec, &whole = *whole_.spec;
  const std::vector<int64_t> columns = rank_columns(own, rank);
  std::vector<float> x(static_cast<size_t>(sampled_rows * own.k));
  for (int64_t row = 0; row < sampled_rows; ++row)
    for (size_t i = 0; i < columns.size(); ++i)
      if (columns[i] != kPadding)
        x[static_cast<size_t>(row * own.k) + i] = x_[static_cast<size_t>(row * whole.k + columns[i])];
  const Product product = multiply(shard.weights, x);
  for (size_t part = 0; part < shard.weights.parts.size(); ++part) {
    const std::vector<int64_t> sources = rank_rows(own, part, rank);
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i] == kPadding) continue;
      const int64_t from = output_column(shard.weights, part, static_cast<int64_t>(i));
      const int64_t to = output_column(whole_, part, sources[i]);
      for (int64_t row = 0; row < sampled_rows; ++row)
        sum_[static_cast<size_t>(row * whole.n + to)] += product.y[static_cast<size_t>(row * own.n + from)];
    }
  }
}

std::string ShardSum::difference() const {
  const auto n = static_cast<size_t>(whole_.spec->n);
  for (size_t i = 0; i < sum_.size(); ++i) {
    const double wanted = wanted_.y[i], allowed = order_of_sums * (std::abs(wanted) + wanted_.magnitude[i]);
    if (!(std::abs(sum_[i] - wanted) <= allowed))
      return fmt::format("row {}, column {}: {:.6g} instead of {:.6g}", i / n, i % n, sum_[i], wanted);
  }
  return "";
}

}  // namespace gearshift
