#include "measure/race.h"

#include <algorithm>
#include <limits>

#include "measure/timer.h"
#include "plan/measured.h"

namespace gearshift {

namespace {

MeasuredTime time_of(const std::vector<double>& laps) {
  const Timing timing = summarize(laps);
  MeasuredTime time;
  time.median_us = timing.median_us;
  time.p10_us = timing.p10_us;
  time.p90_us = timing.p90_us;
  time.error_us = timing.error_us;
  time.samples = timing.samples;
  return time;
}

// The same median after laps without end.
MeasuredTime certain(MeasuredTime time) {
  time.p10_us = time.p90_us = time.median_us;
  time.error_us = 0;
  return time;
}

// More laps could still tell these two apart: the medians differ by more than what never counts, and neither beats the
// other yet.
bool open_between(const std::vector<double>& a, const std::vector<double>& b) {
  const MeasuredTime now_a = time_of(a), now_b = time_of(b), exact_a = certain(now_a), exact_b = certain(now_b);
  return (beats(exact_a, exact_b) && !beats(now_a, now_b)) || (beats(exact_b, exact_a) && !beats(now_b, now_a));
}

}  // namespace

std::vector<std::vector<double>> race(size_t candidates, size_t incumbent, const Lap& lap, const RaceRules& rules) {
  std::vector<std::vector<double>> laps(candidates);
  std::vector<size_t> running;
  double in_laps = 0;
  const double begun = rules.now_us ? rules.now_us() : 0;
  for (size_t i = 0; i < candidates; ++i) {
    running.push_back(i);
    in_laps += lap(i);
  }
  const auto median = [&](size_t i) { return summarize(laps[i]).median_us; };
  for (int round = 0; round < rules.most; ++round) {
    std::rotate(running.begin(), running.begin() + (running.size() > 1 ? 1 : 0), running.end());
    for (const size_t i : running) {
      laps[i].push_back(lap(i));
      in_laps += laps[i].back();
    }
    const double spent = rules.now_us ? rules.now_us() - begun : in_laps;
    const int done = round + 1;
    if (done >= 2) {
      double fastest = std::numeric_limits<double>::infinity();
      for (const size_t i : running) fastest = std::min(fastest, median(i));
      const double limit = fastest * (done >= rules.fewest ? rules.slower : rules.hopeless);
      running.erase(
          std::remove_if(running.begin(), running.end(), [&](size_t i) { return i != incumbent && median(i) > limit; }),
          running.end());
    }
    if (spent > rules.end_us) break;
    if (done < rules.fewest) continue;
    if (running.size() == 1) break;
    const bool open = std::any_of(running.begin(), running.end(),
                                  [&](size_t i) { return i != incumbent && open_between(laps[i], laps[incumbent]); });
    if (spent > (open ? rules.open_us : rules.budget_us) || (done >= rules.samples && !open)) break;
  }
  return laps;
}

}  // namespace gearshift
