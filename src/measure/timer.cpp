#include "measure/timer.h"

#include <algorithm>
#include <cmath>

namespace gearshift {

namespace {

// 1.2533 sigma / sqrt(n) for normal samples, whose 30th and 70th percentile are 1.0488 sigma apart. What interruptions
// do to the slowest samples does not move a median, and must not look as if it did.
constexpr double error_of_median = 1.2533 / 1.0488;

}  // namespace

Quantiles quantiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](double quantile) {
    const auto position = static_cast<size_t>(std::ceil(quantile * static_cast<double>(samples.size())));
    return samples[std::max<size_t>(1, position) - 1];
  };
  return {rank(0.5), rank(0.1), rank(0.9), static_cast<int>(samples.size())};
}

Timing summarize(std::vector<double> samples_us) {
  std::sort(samples_us.begin(), samples_us.end());
  const double n = static_cast<double>(samples_us.size());
  const auto rank = [&](double quantile) {
    return samples_us[std::max<size_t>(1, static_cast<size_t>(std::ceil(quantile * n))) - 1];
  };
  const double middle = rank(0.7) - rank(0.3);
  const Quantiles q = quantiles(std::move(samples_us));
  return {q.median, q.p10, q.p90, q.samples, error_of_median * middle / std::sqrt(n)};
}

Timing time_calls(const std::function<void()>& call, TimerLimits limits) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed_of = [&] {
    const auto begin = Clock::now();
    call();
    return Clock::now() - begin;
  };
  auto spent = elapsed_of();  // warm-up: pages, caches, threads
  std::vector<double> samples_us;
  while (samples_us.empty() || (static_cast<int>(samples_us.size()) < limits.samples && spent < limits.time_budget)) {
    const auto elapsed = elapsed_of();
    spent += elapsed;
    samples_us.push_back(std::chrono::duration<double, std::micro>(elapsed).count());
  }
  return summarize(std::move(samples_us));
}

}  // namespace gearshift
