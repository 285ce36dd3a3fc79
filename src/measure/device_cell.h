// One kernel at one batch size on a device: checked once, then timed in portions beside others.
#pragma once

#include <optional>

#include "measure/activations.h"
#include "measure/device_run.h"
#include "measure/judge.h"
#include "measure/made_up_layer.h"

namespace gearshift {

class DeviceCell {
 public:
  // REQUIRES: the kernel's layout is packed. Error runtime: not enough memory. `layer` must outlive the cell.
  static Result<DeviceCell> make(const Kernel& kernel, const MadeUpLayer& layer, int64_t m, DType dtype, uint64_t seed,
                                 int threads);

  // Runs into poisoned memory and judges: outliers, zeros and subnormal numbers among the activations. Then readies the
  // laps, with plain ones. Error runtime: what the device reports.
  Result<void> check(Judge& judge);
  // Up to `laps` laps, fewer of long ones. REQUIRES: check() found the numbers right.
  Result<void> take(int laps);

  const Kernel& kernel() const { return *kernel_; }
  int64_t m() const { return x_.rows; }
  const Comparison& comparison() const { return comparison_; }
  int64_t copies() const { return laps_ ? laps_->copies() : 0; }
  // nullopt: nothing was timed.
  std::optional<Timing> timing() const;

 private:
  const Kernel* kernel_ = nullptr;
  const MadeUpLayer* layer_ = nullptr;
  uint64_t seed_ = 0;
  int threads_ = 1;
  OwnedMatrix x_;
  Comparison comparison_;
  std::optional<DeviceLaps> laps_;
  std::vector<double> samples_us_;
};

}  // namespace gearshift
