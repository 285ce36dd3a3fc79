#include "kernel/cuda/stream_tactics.h"

#include <algorithm>
#include <cmath>

namespace gearshift::cuda {

namespace {

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Time on the busiest multiprocessor, in units (or tiles) of 16 x 128 weights. The constants and each tactic's `cost`
// were fitted to all tactics on nine shapes, M = 1, 8, 16, on an H200 (bench_cuda_kernels --sweep; three formats of
// four bits, two of eight): what it chooses there is within 6 % of the fastest everywhere and within 1 % nearly
// everywhere.
struct StreamCosts {
  double share_of_x;       // a byte of x against a byte of weights
  double units_in_flight;  // below it a multiprocessor does not reach its share of the memory's rate
  double block_start, slab_end, ring_fill, cluster_exchange;
};
constexpr StreamCosts kUnitCosts{1.274, 52, 250.6, 52.5, 1.651, 105};
constexpr StreamCosts kRowCosts{0.169, 0, 60.83, 16.69, 0, 64.26};

double cost_of(const StreamCosts& costs, const StreamTactic& t, int cluster, int64_t slabs, int64_t units, int64_t m,
               int unit_bytes, const StreamDevice& device) {
  const int shared = stream_shared_bytes(t, unit_bytes) + 1024;
  const int fitting = std::max(1, std::min(t.occupancy, device.shared_bytes_per_multiprocessor / shared));
  const int64_t blocks = divided_up(slabs, t.slabs) * cluster;
  const int64_t at_once = int64_t{device.multiprocessors} * fitting;
  // Of the blocks that run at once, those that share a multiprocessor share its bandwidth.
  const auto rounds =
      static_cast<double>(blocks / at_once * fitting + divided_up(blocks % at_once, device.multiprocessors));
  const int64_t chunks_of_warp = divided_up(divided_up(units, cluster), t.warps);
  const double x_bytes = static_cast<double>(m) * 256, slab_bytes = static_cast<double>(t.slabs) * unit_bytes;
  const double stream =
      static_cast<double>(t.slabs * chunks_of_warp * t.warps) * (1 + costs.share_of_x * x_bytes / slab_bytes);
  const double slow = std::max(1.0, costs.units_in_flight / (t.warps * t.depth * fitting));
  const double fixed = costs.block_start * fitting + (cluster > 1 ? costs.cluster_exchange : 0) +
                       costs.slab_end * t.slabs * t.token_tiles + costs.ring_fill * t.warps * t.depth;
  return (rounds * stream * slow + fixed * static_cast<double>(divided_up(blocks, at_once))) * t.cost;
}

}  // namespace

StreamChoice choose_stream_tactic(StreamTactics tactics, int64_t slabs, int64_t units, int64_t m, int unit_bytes,
                                  bool rare, const StreamDevice& device) {
  StreamChoice best;
  double least = 0;
  const int tiles = m <= 8 ? 1 : 2;
  const StreamCosts& costs = tactics.data() == stream_row_tactics.data() ? kRowCosts : kUnitCosts;
  for (size_t i = 0; i < tactics.size(); ++i) {
    const StreamTactic& t = tactics[i];
    if (t.token_tiles != tiles || !stream_fits(t, unit_bytes, slabs, m, device, rare)) continue;
    for (const int cluster : {1, 2}) {
      if (cluster > 1 && (!device.clusters || units < 2 * t.warps)) continue;
      const double cost = cost_of(costs, t, cluster, slabs, units, m, unit_bytes, device);
      if (best.tactic >= 0 && cost >= least) continue;
      best = {static_cast<int>(i), cluster};
      least = cost;
    }
  }
  return best;
}

int choose_stream_group_tactic(StreamTactics tactics, double busy, int64_t slabs, int64_t units, int64_t m,
                               int unit_bytes, bool rare, bool paired, const StreamDevice& device) {
  // Of a block, in units: until its first weights are there, and from its last ones to the end.
  constexpr double kBlockStart = 16, kShareOfX = 0.25;
  int best = -1;
  double least = 0;
  for (size_t i = 0; i < tactics.size(); ++i) {
    const StreamTactic& t = tactics[i];
    if (t.token_tiles != (m <= 8 ? 1 : 2) || !stream_fits(t, unit_bytes, slabs, m, device, rare)) continue;
    if (paired && t.slabs % 2 != 0) continue;
    const int shared = stream_shared_bytes(t, unit_bytes) + 1024;
    const int fitting = std::max(1, std::min(t.occupancy, device.shared_bytes_per_multiprocessor / shared));
    const double blocks = busy * static_cast<double>(divided_up(slabs, t.slabs));
    const double of_busiest = std::ceil(blocks / device.multiprocessors);
    const double work = static_cast<double>(t.slabs * units) *
                        (1 + kShareOfX * static_cast<double>(m * 256) / static_cast<double>(t.slabs * unit_bytes));
    const double cost = t.cost * of_busiest * (work + kBlockStart / fitting * static_cast<double>(t.warps));
    if (best >= 0 && cost >= least) continue;
    best = static_cast<int>(i);
    least = cost;
  }
  return best;
}

StreamChoice find_stream_tactic(StreamTactics tactics, std::string_view name) {
  for (size_t i = 0; i < tactics.size(); ++i) {
    for (const int cluster : {1, 2}) {
      if (stream_tactic_name(tactics[i], cluster) == name) return {static_cast<int>(i), cluster};
    }
  }
  return {};
}

std::vector<std::string_view> stream_tactic_names(StreamTactics tactics) {
  static const auto names_of = [](StreamTactics of, int clusters) {
    std::vector<std::string> all;
    for (const StreamTactic& t : of) {
      for (int cluster = 1; cluster <= clusters; ++cluster) all.push_back(stream_tactic_name(t, cluster));
    }
    return all;
  };
  static const std::array names = {names_of(stream_tactics, 2), names_of(stream_row_tactics, 2),
                                   names_of(stream_group_tactics, 1), names_of(stream_row_group_tactics, 1)};
  const void* const tables[] = {stream_tactics.data(), stream_row_tactics.data(), stream_group_tactics.data(),
                                stream_row_group_tactics.data()};
  for (size_t i = 0; i < names.size(); ++i) {
    if (tables[i] == tactics.data()) return {names[i].begin(), names[i].end()};
  }
  return {};
}

}  // namespace gearshift::cuda
