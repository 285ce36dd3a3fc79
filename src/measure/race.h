// Times candidates against each other: laps in turn, so that what disturbs one disturbs all.
#pragma once

#include <functional>

#include "gearshift/measure.h"

namespace gearshift {

struct RaceRules {
  int samples = 25;        // laps of each candidate that stays
  int most = 100;          // where the result is still open after that
  int fewest = 5;          // laps before a candidate leaves for being slower, or the race ends for want of time
  double slower = 1.3;     // than the fastest: leaves after `fewest` laps
  double hopeless = 3;     // than the fastest: leaves after two
  double budget_us = 1e6;  // laps together, what stands between them included where there is a clock
  double open_us = 3e6;    // the same while the result is open
  double end_us = 8e6;     // the end, whatever is known by then
  std::function<double()> now_us = nullptr;  // a clock; nullptr: laps alone count
};

// One launch of a candidate; microseconds.
using Lap = std::function<double(size_t candidate)>;

// The laps of each candidate after one to warm up, which does not count. `incumbent` never leaves. The order within a
// round changes from round to round: nobody always runs behind the same one.
std::vector<std::vector<double>> race(size_t candidates, size_t incumbent, const Lap& lap, const RaceRules& rules = {});

}  // namespace gearshift
