#include "kernel/cuda/prefill_launch.h"

#include <atomic>
#include <random>

namespace gearshift::cuda {

namespace {

// A number that no flag holds by chance: workspaces come with any contents, and clearing flags first would cost a
// launch. A launch lowers every flag that it raised.
uint64_t next_ticket() {
  static std::atomic<uint64_t> next = [] {
    std::random_device random;
    return static_cast<uint64_t>(random()) << 32 | random();
  }();
  return next.fetch_add(0x9E3779B97F4A7C15) | 1;
}

}  // namespace

PrefillScratch carve_prefill(Carver& carver) {
  PrefillScratch scratch;
  scratch.flags = carver.take<uint64_t>(int64_t{prefill_most_blocks} * 4);
  scratch.partials = carver.take<float>(prefill_partial_bytes() / 4);
  return scratch;
}

bool begin_prefill(const RunArgs& args, const PrefillTable& table, const PrefillSize& size,
                   const PrefillScratch& scratch, PrefillCall& call, PrefillLaunch& launch) {
  PrefillSchedule schedule;
  if (args.tactic.empty()) {
    schedule = choose_prefill(table, size);
  } else {
    const PrefillChoice choice = find_prefill_tactic(table, args.tactic);
    if (choice.tactic < 0) return false;
    const auto asked = schedule_prefill(table, choice.tactic, choice.sharing, size);
    if (!asked) return false;
    schedule = *asked;
  }
  call.y = static_cast<uint16_t*>(args.y.data);
  call.y_stride = args.y.stride;
  call.partials = scratch.partials;
  call.flags = scratch.flags;
  call.ticket = next_ticket();
  call.units = static_cast<int>(size.units);
  call.m = static_cast<int>(size.m);
  call.row_tiles = schedule.row_tiles;
  call.token_tiles = schedule.token_tiles;
  call.band = std::max(1, 1024 / table.tactics[static_cast<size_t>(schedule.tactic)].tokens);
  call.whole_tiles = schedule.whole_tiles;
  launch.tactic = schedule.tactic;
  launch.blocks = schedule.blocks;
  launch.stream = args.stream;
  return true;
}

}  // namespace gearshift::cuda
