#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "measure/experts_cell.h"

namespace gearshift {

MadeUpRouting make_routing(int64_t tokens, int64_t top_k, int64_t experts, double skew, uint64_t seed) {
  MadeUpRouting routing{tokens, top_k, {}, {}};
  std::mt19937_64 random(seed);
  std::vector<int32_t> order(static_cast<size_t>(experts));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::uniform_real_distribution<double> unit(std::numeric_limits<double>::min(), 1.0);
  std::vector<std::pair<double, int32_t>> keys(order.size());
  for (int64_t t = 0; t < tokens; ++t) {
    // The top_k smallest of exponential waiting times are a draw without replacement in proportion to their rates
    // (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).
    for (size_t r = 0; r < keys.size(); ++r)
      keys[r] = {-std::log(unit(random)) * std::pow(static_cast<double>(r + 1), skew), order[r]};
    std::partial_sort(keys.begin(), keys.begin() + top_k, keys.end());
    double sum = 0;
    for (int64_t s = 0; s < top_k; ++s) sum += 1.0 / static_cast<double>(s + 1);
    for (int64_t s = 0; s < top_k; ++s) {
      routing.experts.push_back(keys[static_cast<size_t>(s)].second);
      routing.weights.push_back(static_cast<float>(1.0 / static_cast<double>(s + 1) / sum));
    }
  }
  return routing;
}

}  // namespace gearshift
