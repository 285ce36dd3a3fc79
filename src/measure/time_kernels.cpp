#include "measure/time_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "measure/activations.h"
#include "measure/timer.h"

namespace gearshift {

namespace {

int64_t scratch_of(const Kernel& kernel, const LayerSpec& layer, const RaceConditions& conditions) {
  return kernel.workspace_bytes == nullptr
             ? 0
             : std::max<int64_t>(0, kernel.workspace_bytes(layer, conditions.m, conditions.threads));
}

std::string out_of_memory(double needed, double allowed) {
  return fmt::format("memory: needs {}, {} may be used", format_bytes(static_cast<uint64_t>(needed)),
                     format_bytes(static_cast<uint64_t>(allowed)));
}

}  // namespace

std::vector<RaceResult> time_kernels(const PreparedLayer& layer, int64_t expert, const std::vector<RaceEntry>& entries,
                                     size_t incumbent, const RaceConditions& conditions, const TuneDevice& device) {
  const LayerSpec& spec = layer.plan->layer;
  std::vector<RaceResult> results(entries.size());
  // In double: a product of sizes from a file could overflow.
  const double matrices = static_cast<double>(conditions.m) * static_cast<double>(spec.n + spec.k) *
                          static_cast<double>(element_bytes(conditions.dtype));
  const double available = static_cast<double>(device.free_bytes());
  std::vector<size_t> fit;
  int64_t largest = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t scratch = scratch_of(*entries[i].kernel, spec, conditions);
    const double needed = matrices + static_cast<double>(scratch);
    if (conditions.memory_limit > 0 && needed > static_cast<double>(conditions.memory_limit)) {
      results[i].why_not = out_of_memory(needed, static_cast<double>(conditions.memory_limit));
    } else if (available > 0 && needed > available) {
      results[i].why_not = out_of_memory(needed, available);
    } else {
      fit.push_back(i);
      largest = std::max(largest, scratch);
    }
  }
  // Without the default there is nothing to compare with.
  if (std::find(fit.begin(), fit.end(), incumbent) == fit.end()) {
    for (const size_t i : fit) results[i].why_not = "memory: the default does not fit";
    return results;
  }
  std::vector<RaceEntry> starters;
  for (const size_t i : fit) starters.push_back(entries[i]);
  const RaceSetting setting{layer,           expert,          starters,           conditions.m, conditions.dtype,
                            conditions.mode, conditions.seed, conditions.threads, largest};
  const Result<Lap> lap = device.start(setting);
  if (!lap.ok()) {
    for (const size_t i : fit) results[i].why_not = lap.error().message();
    return results;
  }
  const auto first = static_cast<size_t>(std::find(fit.begin(), fit.end(), incumbent) - fit.begin());
  RaceRules rules = conditions.rules;
  rules.now_us = [&] { return device.now_s() * 1e6; };
  const std::vector<std::vector<double>> laps = race(fit.size(), first, *lap, rules);
  for (size_t i = 0; i < fit.size(); ++i) results[fit[i]].timing = summarize(laps[i]);
  return results;
}

}  // namespace gearshift
