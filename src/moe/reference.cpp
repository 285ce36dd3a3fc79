#include <algorithm>
#include <cmath>

#include "gearshift/moe.h"
#include "kernel/output.h"
#include "kernel/reference/reference.h"
#include "moe/elements.h"

namespace gearshift {

namespace {

double exact_value(const ExpertFunction& function, double v) {
  switch (function.kind) {
    case ExpertFunction::Kind::silu:
      return v / (1 + std::exp(-static_cast<double>(function.alpha) * v));
    case ExpertFunction::Kind::gelu:
      return v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
    case ExpertFunction::Kind::gelu_tanh:
      return v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
    case ExpertFunction::Kind::relu2:
      return v > 0 ? v * v : 0;
    case ExpertFunction::Kind::unknown:
      break;
  }
  return std::nan("");
}

double clip(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

}  // namespace

void reference_experts(const ExpertBlock& block, const RoutedTokens& routed, const ConstMatrix& x,
                       std::span<const int64_t> rows, DType hidden, double* y, int threads) {
  const LayerSpec &in = block.first().plan->layer, &out = block.second().plan->layer;
  const ExpertFunction& f = block.function();
  const double limit = f.limit > 0 ? f.limit : HUGE_VAL;
  const bool interleaved = in.row_order == RowOrder::interleaved;
  std::fill(y, y + static_cast<int64_t>(rows.size()) * out.n, 0.0);
  for (int64_t expert = 0; expert < block.experts(); ++expert) {
    std::vector<int64_t> tokens, own;  // of this expert: rows of x, and their numbers among them
    std::vector<std::pair<size_t, double>> to;
    for (size_t r = 0; r < rows.size(); ++r) {
      for (int64_t slot = 0; slot < routed.top_k; ++slot) {
        const int64_t entry = rows[r] * routed.top_k + slot;
        if (routed.experts[entry] != expert) continue;
        own.push_back(static_cast<int64_t>(tokens.size()));
        tokens.push_back(rows[r]);
        to.emplace_back(r, routed.weights[entry]);
      }
    }
    if (tokens.empty()) continue;
    const auto count = static_cast<int64_t>(tokens.size());
    std::vector<double> projected(static_cast<size_t>(count * in.n)), result(static_cast<size_t>(count * out.n));
    reference_rows(block.first().weights[static_cast<size_t>(expert)], x, tokens, ActivationUse::as_checkpoint,
                   projected.data(), nullptr, threads);
    std::vector<float> held(static_cast<size_t>(count * out.k));  // room for any type
    for (int64_t m = 0; m < count; ++m) {
      const double* row = projected.data() + m * in.n;
      for (int64_t i = 0; i < out.k; ++i) {
        double value = exact_value(f, clip(row[block.gated() && interleaved ? 2 * i : i], -HUGE_VAL, limit));
        if (block.gated()) {
          const double up = row[interleaved ? 2 * i + 1 : out.k + i];
          value *= clip(up, -limit, limit) + static_cast<double>(f.up_offset);
        }
        store({held.data(), hidden, count, out.k, out.k}, m, i, value);
      }
    }
    reference_rows(block.second().weights[static_cast<size_t>(expert)], {held.data(), hidden, count, out.k, out.k}, own,
                   ActivationUse::as_checkpoint, result.data(), nullptr, threads);
    for (int64_t m = 0; m < count; ++m) {
      const auto& [r, weight] = to[static_cast<size_t>(m)];
      for (int64_t n = 0; n < out.n; ++n) y[static_cast<int64_t>(r) * out.n + n] += weight * result[m * out.n + n];
    }
  }
}

}  // namespace gearshift
