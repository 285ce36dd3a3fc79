#include "pipeline/tune_group.h"

#include <algorithm>

#include "base/math.h"
#include "plan/measured.h"

namespace gearshift {

namespace {

// A candidate this many times slower than the fastest at the two batch sizes below, and not catching up from one to the
// other, is not tried at the next one.
constexpr double hopeless_factor = 2;
constexpr double catching_up = 0.8;
// Where two kernels differ by less than this at both ends, it does not matter where between them the switch is.
constexpr double worth_a_switch = 1.05;

bool allows(const Contract& contract, int64_t m) {
  return m >= contract.m.min && (contract.m.max == 0 || m <= contract.m.max) &&
         m % std::max<int64_t>(1, contract.m.multiple) == 0;
}

// Refused for nothing but a layout of its own that the budget could pay for.
bool could_be_paid(const Verdict& verdict, const LayerSpec& layer, uint64_t budget) {
  if (budget == 0 || verdict.stage != Stage::policy || verdict.field != "layout") return false;
  const double bytes = static_cast<double>(verdict.kernel->layout->bytes(layer)) *
                       static_cast<double>(std::max<int64_t>(1, layer.experts));
  return bytes <= static_cast<double>(budget);
}

}  // namespace

TuneGroup::TuneGroup(const Session& session, size_t row, std::shared_ptr<const Decision> listed)
    : session_(session), row_(row), listed_(std::move(listed)) {
  const std::vector<int64_t>& batch = session_.settings().policy.batch;
  tunable_ = std::any_of(batch.begin(), batch.end(), [&](int64_t m) { return candidates(m).size() > 1; });
}

void TuneGroup::add_point(int64_t m) {
  const auto place = std::lower_bound(points_.begin(), points_.end(), m);
  if (place == points_.end() || *place != m) points_.insert(place, m);
}

std::vector<RaceEntry> TuneGroup::entries() const {
  std::vector<RaceEntry> entries;
  for (const Verdict& verdict : listed_->candidates) {
    // A host's kernel beside those of a device is what is left when nothing else may run, no rival.
    if (verdict.kernel->platform != session_.device().platform) continue;
    if (verdict.kind == VerdictKind::rejected &&
        !could_be_paid(verdict, layer(), session_.settings().policy.memory_budget))
      continue;
    entries.push_back({verdict.kernel, ""});
    for (const std::string_view tactic : verdict.kernel->tactics)
      entries.push_back({verdict.kernel, std::string(tactic)});
  }
  return entries;
}

std::vector<RaceEntry> TuneGroup::candidates(int64_t m) const {
  std::vector<RaceEntry> racing = entries();
  racing.erase(std::remove_if(racing.begin(), racing.end(),
                              [&](const RaceEntry& entry) {
                                return !allows(entry.kernel->contract, m) || is_quarantined(entry, m) ||
                                       is_hopeless(entry, m);
                              }),
               racing.end());
  return racing;
}

bool TuneGroup::is_known(int64_t m) const {
  const std::vector<RaceEntry> racing = candidates(m);
  return std::all_of(racing.begin(), racing.end(),
                     [&](const RaceEntry& entry) { return time_of(entry, m) != nullptr; });
}

bool TuneGroup::is_quarantined(const RaceEntry& entry, int64_t m) const {
  const auto& rows = session_.store.quarantines;
  return std::any_of(rows.begin(), rows.end(), [&](const Quarantine& row) {
    return row.kernel == entry.kernel->name && row.kernel_version == entry.kernel->version &&
           (row.tactic.empty() || row.tactic == entry.tactic) && row.layer_class == layer_class() &&
           row.dtype == name(session_.dtype()) && m >= row.m_min && (row.m_max == 0 || m <= row.m_max);
  });
}

const MeasuredTime* TuneGroup::time_of(const RaceEntry& entry, int64_t m) const {
  for (const MeasuredTime& time : session_.store.times) {
    if (time.m == m && time.kernel == entry.kernel->name && time.kernel_version == entry.kernel->version &&
        time.tactic == entry.tactic && time.layer_class == layer_class() &&
        time.layout == key_of(*entry.kernel->layout) && time.dtype == name(session_.dtype()) &&
        time.mode == session_.settings().policy.mode && time.threads == session_.threads())
      return &time;
  }
  return nullptr;
}

bool TuneGroup::is_hopeless(const RaceEntry& entry, int64_t m) const {
  // The default is always in the race.
  if (entry.tactic.empty() && entry.kernel == range_for(*listed_, m).kernel) return false;
  std::vector<double> times_slower;  // from the nearest batch size down
  for (auto point = points_.rbegin(); point != points_.rend() && times_slower.size() < 2; ++point) {
    if (*point >= m || !allows(entry.kernel->contract, *point)) continue;
    std::optional<double> fastest;
    for (const RaceEntry& other : entries()) {
      const MeasuredTime* time = time_of(other, *point);
      if (time != nullptr && (!fastest || time->median_us < *fastest)) fastest = time->median_us;
    }
    if (!fastest) return false;
    const MeasuredTime* own = time_of(entry, *point);
    if (own == nullptr) return true;  // left out there already
    times_slower.push_back(own->median_us / *fastest);
  }
  return times_slower.size() == 2 && std::min(times_slower[0], times_slower[1]) >= hopeless_factor &&
         times_slower[0] >= catching_up * times_slower[1];
}

bool TuneGroup::matters(const PlannedRange& low, const PlannedRange& high, int64_t m_low, int64_t m_high) const {
  if (low.kernel == high.kernel && low.tactic == high.tactic) return false;
  for (const int64_t m : {m_low, m_high}) {
    const MeasuredTime* a = time_of({low.kernel, std::string(low.tactic)}, m);
    const MeasuredTime* b = time_of({high.kernel, std::string(high.tactic)}, m);
    if (a == nullptr || b == nullptr) return true;
    if (std::max(a->median_us, b->median_us) >= worth_a_switch * std::min(a->median_us, b->median_us)) return true;
  }
  return false;
}

}  // namespace gearshift
