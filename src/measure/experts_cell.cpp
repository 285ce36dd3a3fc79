#include "measure/experts_cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/try.h"
#include "kernel/reference/reference.h"
#include "measure/judge.h"
#include "measure/poison.h"
#include "measure/timer.h"

namespace gearshift {

namespace {

double element(const ConstMatrix& m, int64_t row, int64_t column) {
  return load_element(static_cast<const uint8_t*>(m.data) + row * m.stride * element_bytes(m.dtype), m.dtype, column);
}

// Judges the sorted rows `places` of one projection, ascending. `inputs`: the row of `in` that each was made from.
class ProjectionJudge {
 public:
  ProjectionJudge(const ExpertBlock::Projection& projection, const SortedTokens& sorted, int threads)
      : layer_(*projection.layer), sorted_(sorted), threads_(threads) {}

  // "" or the first failure; `rows` then says how many rows that expert had.
  std::string judge(const std::vector<int64_t>& places, const std::vector<int64_t>& inputs, const ConstMatrix& in,
                    const ConstMatrix& out, int64_t& rows) const {
    for (size_t begin = 0; begin < places.size();) {
      const int64_t expert = expert_of(places[begin]);
      size_t end = begin + 1;
      while (end < places.size() && places[end] < sorted_.first[static_cast<size_t>(expert) + 1]) ++end;
      const std::string failure =
          judge_expert(expert, {places.data() + begin, end - begin}, {inputs.data() + begin, end - begin}, in, out);
      if (!failure.empty()) {
        rows = sorted_.rows_of(expert);
        return failure;
      }
      begin = end;
    }
    return "";
  }

 private:
  int64_t expert_of(int64_t place) const {
    return std::upper_bound(sorted_.first.begin(), sorted_.first.end(), place) - sorted_.first.begin() - 1;
  }

  std::string judge_expert(int64_t expert, std::span<const int64_t> places, std::span<const int64_t> inputs,
                           const ConstMatrix& in, const ConstMatrix& out) const {
    const LayerSpec& layer = layer_.plan->layer;
    const Kernel& kernel = *range_for(*layer_.plan->decision, sorted_.rows_of(expert)).kernel;
    std::vector<double> wanted(places.size() * static_cast<size_t>(layer.n)), magnitude(wanted.size());
    reference_rows(layer_.weights[static_cast<size_t>(expert)], in, inputs, kernel.activation, wanted.data(),
                   magnitude.data(), threads_);
    for (size_t i = 0; i < places.size(); ++i) {
      for (int64_t n = 0; n < layer.n; ++n) {
        const size_t at = i * static_cast<size_t>(layer.n) + static_cast<size_t>(n);
        const double found = element(out, places[i], n);
        if (within_bound(kernel, layer.k, magnitude[at], wanted[at], found, out.dtype)) continue;
        return fmt::format("{}, expert {} of {} rows, column {}: {:g} instead of {:g}, {:g} allowed", layer.name,
                           expert, sorted_.rows_of(expert), n, found, wanted[at],
                           error_bound(kernel, layer.k, magnitude[at], wanted[at], out.dtype));
      }
    }
    return "";
  }

  const PreparedLayer& layer_;
  const SortedTokens& sorted_;
  int threads_;
};

// The scale that all rows of an expert share cannot be made again from a sample of them.
bool may_judge(const ExpertBlock::Projection& projection) {
  const auto& activation = projection.layer->plan->layer.scheme.activation;
  return !activation || !activation->dynamic || activation->granularity != Granularity::tensor;
}

std::string judge_functions(const ExpertBlock& block, const std::vector<int64_t>& places, const ConstMatrix& projected,
                            const ConstMatrix& activated) {
  std::vector<float> room(static_cast<size_t>(block.hidden()));
  const ExpertRowOrder order{block.gated(), block.first().plan->layer.row_order == RowOrder::interleaved};
  for (const int64_t place : places) {
    const auto* row =
        static_cast<const uint8_t*>(projected.data) + place * projected.stride * element_bytes(projected.dtype);
    apply_function(block.function(), order, projected.dtype, row, block.hidden(), room.data());
    for (int64_t i = 0; i < block.hidden(); ++i) {
      const double wanted = load_element(room.data(), activated.dtype, i), found = element(activated, place, i);
      if (found != wanted && !(std::isnan(found) && std::isnan(wanted)))
        return fmt::format("activation of sorted row {}, column {}: {:g} instead of {:g}", place, i, found, wanted);
    }
  }
  return "";
}

std::string judge_sums(const RoutedTokens& routed, const std::vector<int64_t>& tokens, const ExpertScratch& scratch,
                       const ConstMatrix& outputs, const ConstMatrix& y) {
  for (const int64_t t : tokens) {
    for (int64_t n = 0; n < y.cols; ++n) {
      double sum = 0, magnitude = 0;
      for (int64_t s = 0; s < routed.top_k; ++s) {
        const int64_t entry = t * routed.top_k + s;
        const double product = static_cast<double>(routed.weights[entry]) *
                               element(outputs, scratch.sorted().place[static_cast<size_t>(entry)], n);
        sum += product;
        magnitude += std::abs(product);
      }
      const double allowed = magnitude * 0x1p-24 * static_cast<double>(routed.top_k + 1) +
                             std::abs(sum) * unit_roundoff(y.dtype) + 0x1p-25;
      const double found = element(y, t, n);
      const bool both_leave_the_range = std::isinf(found) && (found > 0) == (sum > 0) && !(std::abs(sum) < 6e4);
      if (!(std::abs(found - sum) <= allowed) && !both_leave_the_range)
        return fmt::format("token {}, column {}: {:g} instead of {:g}, {:g} allowed", t, n, found, sum, allowed);
    }
  }
  return "";
}

void compare_whole(const std::vector<int64_t>& tokens, const std::vector<double>& wanted, const ConstMatrix& y,
                   Comparison& comparison) {
  double error = 0, norm = 0;
  std::vector<double> column_error(static_cast<size_t>(y.cols)), column_norm(column_error.size());
  const auto quotient = [](double part, double whole) { return part == 0 ? 0 : std::sqrt(part / whole); };
  for (size_t i = 0; i < tokens.size(); ++i) {
    double row_error = 0, row_norm = 0;
    for (int64_t n = 0; n < y.cols; ++n) {
      const auto column = static_cast<size_t>(n);
      const double reference = wanted[i * column_error.size() + column];
      const double off = element(y, tokens[i], n) - reference;
      row_error += off * off;
      row_norm += reference * reference;
      column_error[column] += off * off;
      column_norm[column] += reference * reference;
    }
    comparison.worst_row = std::max(comparison.worst_row, quotient(row_error, row_norm));
    error += row_error;
    norm += row_norm;
  }
  for (size_t n = 0; n < column_error.size(); ++n)
    comparison.worst_column = std::max(comparison.worst_column, quotient(column_error[n], column_norm[n]));
  comparison.relative_error = quotient(error, norm);
}

// Runs a block once in poisoned memory and judges it.
struct JudgedRun {
  OwnedMatrix y;
  ExpertScratch scratch;
  ExpertsVerdict verdict;
};
Result<JudgedRun> run_judged(const ExpertBlock& block, const RoutedTokens& routed, const ConstMatrix& x, uint64_t seed,
                             int threads) {
  JudgedRun run;
  const std::string& layer = block.second().plan->layer.name;
  GEARSHIFT_TRY(run.y, allocate_matrix(x.dtype, x.rows, block.n(), fmt::format("output of layer {}", layer)));
  const ConstMatrix y = std::as_const(run.y).view();
  if (x.rows > 0) std::memset(run.y.bytes.data(), byte_of(Poison::nan), run.y.bytes.size());
  GEARSHIFT_TRY(run.scratch,
                ExpertScratch::make(block, routed.tokens, std::max<int64_t>(1, routed.top_k), x.dtype, threads));
  run.scratch.poison(byte_of(Poison::nan));
  GEARSHIFT_CHECK(run_experts(block, routed, x, run.y.view(), run.scratch, threads));
  Comparison& comparison = run.verdict.comparison;
  comparison.ok = true;
  if (x.rows == 0) return run;
  run.verdict = judge_experts(block, routed, x, y, run.scratch, seed, threads);
  if (const std::string left = find_poison(y); comparison.ok && !left.empty()) {
    comparison.ok = false;
    comparison.failure = left;
  }
  return run;
}

}  // namespace

ExpertsVerdict judge_experts(const ExpertBlock& block, const RoutedTokens& routed, const ConstMatrix& x,
                             const ConstMatrix& y, const ExpertScratch& scratch, uint64_t seed, int threads) {
  ExpertsVerdict verdict;
  const int64_t entries = routed.tokens * routed.top_k;
  const std::vector<int64_t> tokens = rows_to_judge(routed.tokens, seed);
  std::vector<int64_t> places, read;
  for (const int64_t t : tokens) {
    for (int64_t s = 0; s < routed.top_k; ++s)
      places.push_back(scratch.sorted().place[static_cast<size_t>(t * routed.top_k + s)]);
  }
  std::sort(places.begin(), places.end());
  for (const int64_t place : places) read.push_back(scratch.sorted().entry[static_cast<size_t>(place)] / routed.top_k);
  const ConstMatrix projected = scratch.projected(entries), activated = scratch.activated(entries),
                    outputs = scratch.outputs(entries);
  std::string& failure = verdict.comparison.failure;
  for (int which = 0; which < 2 && failure.empty(); ++which) {
    if (which == 1) failure = judge_functions(block, places, projected, activated);
    const ExpertBlock::Projection& projection = block.projection(which);
    if (!failure.empty() || !may_judge(projection)) continue;
    const ProjectionJudge judge(projection, scratch.sorted(), threads);
    failure = which == 0 ? judge.judge(places, read, x, projected, verdict.rows)
                         : judge.judge(places, places, activated, outputs, verdict.rows);
    if (!failure.empty()) verdict.projection = which;
  }
  if (failure.empty()) failure = judge_sums(routed, tokens, scratch, outputs, y);
  verdict.comparison.ok = failure.empty();
  std::vector<double> wanted(tokens.size() * static_cast<size_t>(block.n()));
  reference_experts(block, routed, x, tokens, x.dtype, wanted.data(), threads);
  compare_whole(tokens, wanted, y, verdict.comparison);
  // Two projections, the function and the sum round once each to the type.
  verdict.comparison.tolerance = 4 * unit_roundoff(x.dtype);
  return verdict;
}

Result<ExpertsCell> run_experts_cell(const ExpertBlock& block, const RoutedTokens& routed, const ConstMatrix& x,
                                     uint64_t seed, int threads) {
  GEARSHIFT_TRY(JudgedRun run, run_judged(block, routed, x, seed, threads));
  ExpertsCell cell;
  if (run.verdict.comparison.ok && x.rows > 0)
    cell.timing = time_calls([&] { (void)run_experts(block, routed, x, run.y.view(), run.scratch, threads).ok(); });
  cell.y = std::move(run.y);
  cell.verdict = std::move(run.verdict);
  return cell;
}

Result<ExpertsVerdict> prove_experts(const ExpertBlock& block, int64_t top_k, DType dtype, uint64_t seed, int threads) {
  constexpr int64_t kTokens = 37;  // no multiple of any tile
  constexpr double kSteep = 3;     // Zipf: the first expert gets five tokens of six
  std::vector<MadeUpRouting> loads = {make_routing(1, top_k, block.experts(), 0, seed),
                                      make_routing(kTokens, top_k, block.experts(), kSteep, seed),
                                      make_routing(kTokens, top_k, block.experts(), 0, seed)};
  loads.push_back(loads.back());
  std::fill(loads.back().experts.begin(), loads.back().experts.end(), static_cast<int32_t>(block.experts() - 1));
  ExpertsVerdict verdict;
  for (const MadeUpRouting& load : loads) {
    GEARSHIFT_TRY(OwnedMatrix x, allocate_matrix(dtype, load.tokens, block.k(), "input of an expert block"));
    make_activations(x.view(), seed, threads, activation_limit(block.first().weights.front()));
    GEARSHIFT_TRY(JudgedRun run, run_judged(block, load.view(), std::as_const(x).view(), seed, threads));
    verdict = std::move(run.verdict);
    if (!verdict.comparison.ok) break;
  }
  return verdict;
}

}  // namespace gearshift
