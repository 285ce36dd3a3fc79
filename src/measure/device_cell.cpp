#include "measure/device_cell.h"

#include <cstring>

#include "base/try.h"
#include "measure/poison.h"
#include "measure/timer.h"

namespace gearshift {

namespace {

// Device time of one portion: many short laps, one long one.
constexpr double kPortionUs = 30'000;

}  // namespace

Result<DeviceCell> DeviceCell::make(const Kernel& kernel, const MadeUpLayer& layer, int64_t m, DType dtype,
                                    uint64_t seed, int threads) {
  DeviceCell cell;
  cell.kernel_ = &kernel;
  cell.layer_ = &layer;
  cell.seed_ = seed;
  cell.threads_ = threads;
  GEARSHIFT_TRY(cell.x_, allocate_matrix(dtype, m, layer.plan.layer.k, "input of a benchmark"));
  return cell;
}

Result<void> DeviceCell::check(Judge& judge) {
  const LayerSpec& spec = layer_->plan.layer;
  const PreparedLayer& prepared = layer_->prepared;
  const float limit = activation_limit(prepared.weights.front());
  make_activations(x_.view(), seed_, threads_, limit);
  GEARSHIFT_TRY(OwnedMatrix y, allocate_matrix(x_.dtype, x_.rows, spec.n, "output of a benchmark"));
  const int64_t scratch = kernel_->workspace_bytes == nullptr ? 0 : kernel_->workspace_bytes(spec, x_.rows, threads_);
  GEARSHIFT_TRY(OwnedMatrix workspace, allocate_matrix(DType::f32, 1, (scratch + 3) / 4, "workspace of a benchmark"));
  std::memset(y.bytes.data(), byte_of(Poison::nan), y.bytes.size());
  if (workspace.bytes.size() != 0) std::memset(workspace.bytes.data(), byte_of(Poison::nan), workspace.bytes.size());
  const ConstMatrix x = std::as_const(x_).view();
  GEARSHIFT_CHECK(run_on_device({*kernel_,
                                 prepared,
                                 x,
                                 {x_.bytes.data(), x_.bytes.size()},
                                 y.view(),
                                 y.bytes.span(),
                                 workspace.bytes.span(),
                                 workspace.bytes.span(),
                                 threads_,
                                 0,
                                 ""}));
  comparison_ = judge.compare(*kernel_, x, std::as_const(y).view());
  if (const std::string left = find_poison(std::as_const(y).view()); !left.empty()) {
    comparison_.ok = false;
    comparison_.failure = left;
  }
  if (!comparison_.ok) return {};
  make_plain_activations(x_.view(), seed_, threads_, limit);
  GEARSHIFT_TRY(laps_, DeviceLaps::make(*kernel_, prepared, std::as_const(x_).view(), 0));
  return {};
}

Result<void> DeviceCell::take(int laps) {
  double spent = 0;
  for (int i = 0; i < laps && (i == 0 || spent < kPortionUs); ++i) {
    GEARSHIFT_TRY(const double us, laps_->lap_us());
    samples_us_.push_back(us);
    spent += us * static_cast<double>(laps_->copies());
  }
  return {};
}

std::optional<Timing> DeviceCell::timing() const {
  if (samples_us_.empty()) return std::nullopt;
  return summarize(samples_us_);
}

}  // namespace gearshift
