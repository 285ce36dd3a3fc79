#include "measure/timer.h"

#include <algorithm>
#include <cmath>

namespace gearshift {

Quantiles quantiles(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const auto rank = [&](double quantile) {
    const auto position = static_cast<size_t>(std::ceil(quantile * static_cast<double>(samples.size())));
    return samples[std::max<size_t>(1, position) - 1];
  };
  return {rank(0.5), rank(0.1), rank(0.9), static_cast<int>(samples.size())};
}

Timing summarize(std::vector<double> samples_us) {
  const Quantiles q = quantiles(std::move(samples_us));
  return {q.median, q.p10, q.p90, q.samples};
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
