#include "kernel/cuda/prefill_tactics.h"

#include <set>

namespace gearshift::cuda {

namespace {

constexpr std::pair<PrefillSharing, std::string_view> kSharings[] = {
    {PrefillSharing::whole, "whole"}, {PrefillSharing::shared, "shared"}, {PrefillSharing::mixed, "mixed"}};
// Beyond it what the last round leaves idle is less than what sharing costs.
constexpr int64_t kRoundsWorthSharing = 8;
// Bytes per microsecond that an H200 reads.
constexpr double kReadRate = 4.45e6;

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// "n256f1w2s1m2-whole": tokens, fragments, warpgroups, split, multicast.
std::string name_of(const PrefillTactic& t, std::string_view sharing) {
  const auto part = [](char letter, int value) { return letter + std::to_string(value); };
  return part('n', t.tokens) + part('f', t.fragments) + part('w', t.warpgroups) + part('s', t.split) +
         part('m', t.multicast) + "-" + std::string(sharing);
}

// Calls visit(number, sharing, its word) for every variant of a table.
template <class Visit>
void every_variant(const PrefillTable& table, const Visit& visit) {
  for (size_t i = 0; i < table.tactics.size(); ++i) {
    for (const auto& [sharing, word] : kSharings) {
      if (table.has(table.tactics[i], sharing)) visit(static_cast<int>(i), sharing, word);
    }
  }
}

}  // namespace

std::optional<PrefillSchedule> schedule_prefill(const PrefillTable& table, int tactic, PrefillSharing sharing,
                                                const PrefillSize& size) {
  const PrefillTactic& t = table.tactics[static_cast<size_t>(tactic)];
  const int cluster = prefill_cluster(t);
  const int64_t workers = std::min(size.multiprocessors, prefill_most_blocks) / cluster;
  const int64_t row_tiles = divided_up(size.rows, prefill_rows(t) * t.multicast);
  const int64_t token_tiles = divided_up(size.m, t.tokens), tiles = row_tiles * token_tiles;
  const int64_t stages = divided_up(size.units, t.units), rounds = tiles / workers;
  // The blocks of a cluster that shares columns meet once, at the end of their only tile.
  if (t.split > 1 && (stages < t.split || tiles > workers)) return std::nullopt;
  PrefillSchedule schedule;
  schedule.tactic = tactic;
  schedule.sharing = sharing;
  schedule.row_tiles = static_cast<int>(row_tiles);
  schedule.token_tiles = static_cast<int>(token_tiles);
  double busiest = 0, ends = 0;  // stages and tiles of a block
  if (sharing == PrefillSharing::whole) {
    schedule.whole_tiles = static_cast<int>(tiles);
    schedule.blocks = static_cast<int>(std::min(workers, tiles)) * cluster;
    ends = static_cast<double>(divided_up(tiles, workers));
    busiest = ends * static_cast<double>(stages) / t.split;
  } else {
    if (t.split > 1 || rounds >= kRoundsWorthSharing || tiles % workers == 0) return std::nullopt;
    const int64_t whole = sharing == PrefillSharing::shared ? 0 : (rounds - 1) * workers;
    const int64_t line = (tiles - whole) * stages;
    if (line < workers || (sharing == PrefillSharing::mixed && rounds < 2)) return std::nullopt;
    schedule.whole_tiles = static_cast<int>(whole);
    schedule.blocks = static_cast<int>(workers) * cluster;
    busiest = static_cast<double>(whole / workers * stages) + static_cast<double>(line) / static_cast<double>(workers);
    ends = static_cast<double>(whole / workers + line / workers / stages + 2);
  }
  const PrefillCost& cost = sharing == PrefillSharing::whole ? t.whole : t.shared;
  schedule.us = cost.start + cost.end * ends +
                std::max(cost.unit * busiest * t.units, static_cast<double>(size.weight_bytes) / kReadRate);
  return schedule;
}

PrefillSchedule choose_prefill(const PrefillTable& table, const PrefillSize& size) {
  std::optional<PrefillSchedule> best;
  every_variant(table, [&](int tactic, PrefillSharing sharing, std::string_view) {
    const auto schedule = schedule_prefill(table, tactic, sharing, size);
    if (schedule && (!best || schedule->us < best->us)) best = schedule;
  });
  return *best;  // some tactic without split has whole tiles in every table
}

PrefillChoice find_prefill_tactic(const PrefillTable& table, std::string_view name) {
  PrefillChoice found;
  every_variant(table, [&](int tactic, PrefillSharing sharing, std::string_view word) {
    if (name_of(table.tactics[static_cast<size_t>(tactic)], word) == name) found = {tactic, sharing};
  });
  return found;
}

std::vector<std::string_view> prefill_tactic_names(const PrefillTable& table) {
  static std::set<std::string> kept;  // registries are made once, by one thread
  std::vector<std::string_view> names;
  every_variant(table, [&](int tactic, PrefillSharing, std::string_view word) {
    names.push_back(*kept.insert(name_of(table.tactics[static_cast<size_t>(tactic)], word)).first);
  });
  return names;
}

std::string prefill_tactic_name(const PrefillTable& table, const PrefillSchedule& schedule) {
  std::string name;
  every_variant(table, [&](int tactic, PrefillSharing sharing, std::string_view word) {
    if (tactic == schedule.tactic && sharing == schedule.sharing)
      name = name_of(table.tactics[static_cast<size_t>(tactic)], word);
  });
  return name;
}

}  // namespace gearshift::cuda
