// Layers that get one decision: who may race for it, and what is known of their times.
#pragma once

#include "measure/host_laps.h"
#include "pipeline/session.h"

namespace gearshift {

class TuneGroup {
 public:
  // `row`: of the session, the first layer of the group. `listed`: what the lists alone say. The session must outlive
  // it.
  TuneGroup(const Session& session, size_t row, std::shared_ptr<const Decision> listed);

  size_t row() const { return row_; }
  const LayerSpec& layer() const { return session_.rows()[row_]; }
  const std::string& layer_class() const { return listed_->layer_class; }
  const Decision& listed() const { return *listed_; }
  // At some batch size of the policy there is more than one to choose from.
  bool tunable() const { return tunable_; }

  // Batch sizes that were measured, ascending.
  const std::vector<int64_t>& points() const { return points_; }
  void add_point(int64_t m);

  // Every kernel that passes its gates, and each of its tactics: list order. Also those whose layout is another one
  // than the lists take, where the memory budget could pay for it.
  std::vector<RaceEntry> entries() const;
  // Those of them that may run m rows, are not quarantined there and not hopelessly slow at smaller batch sizes.
  std::vector<RaceEntry> candidates(int64_t m) const;
  // Each of them was measured at m, by whomever.
  bool is_known(int64_t m) const;
  // As this session would run it; nullptr where it was not measured. Valid until the session's store changes.
  const MeasuredTime* time_of(const RaceEntry& entry, int64_t m) const;
  // Whether it is worth knowing where between two batch sizes one takes over from the other.
  bool matters(const PlannedRange& low, const PlannedRange& high, int64_t m_low, int64_t m_high) const;

 private:
  bool is_quarantined(const RaceEntry& entry, int64_t m) const;
  bool is_hopeless(const RaceEntry& entry, int64_t m) const;

  const Session& session_;
  size_t row_;
  std::shared_ptr<const Decision> listed_;
  std::vector<int64_t> points_;
  bool tunable_ = false;
};

}  // namespace gearshift
