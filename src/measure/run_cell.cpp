#include "measure/run_cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "measure/device_run.h"
#include "measure/poison.h"
#include "measure/timer.h"

namespace gearshift {

Result<Cell> run_cell(const PreparedLayer& layer, const ConstMatrix& x, Judge& judge, int threads, int64_t expert) {
  const LayerSpec& spec = layer.plan->layer;
  Cell cell;
  GEARSHIFT_TRY(cell.y, allocate_matrix(x.dtype, x.rows, spec.n, fmt::format("output of layer {}", spec.name)));
  const int64_t scratch = x.rows == 0 ? 0 : workspace_bytes(*layer.plan, x.rows, threads);
  GEARSHIFT_TRY(OwnedMatrix workspace,
                allocate_matrix(DType::f32, 1, (scratch + 3) / 4, fmt::format("workspace of layer {}", spec.name)));
  const Matrix y = cell.y.view();
  if (x.rows > 0) std::memset(y.data, byte_of(Poison::nan), cell.y.bytes.size());
  if (scratch > 0) std::memset(workspace.bytes.data(), byte_of(Poison::nan), workspace.bytes.size());

  const PlannedRange& range = range_for(*layer.plan->decision, std::max<int64_t>(1, x.rows));
  const Kernel& kernel = *range.kernel;
  const bool here = kernel.platform == Platform::cpu || x.rows == 0;
  if (here) {
    GEARSHIFT_CHECK(run(layer, x, y, workspace.bytes.span(), threads, expert));
  } else {
    const auto* bytes = static_cast<const uint8_t*>(x.data);
    const size_t x_bytes = static_cast<size_t>(((x.rows - 1) * x.stride + x.cols) * element_bytes(x.dtype));
    GEARSHIFT_CHECK(run_on_device({kernel,
                                   layer,
                                   x,
                                   {bytes, x_bytes},
                                   y,
                                   cell.y.bytes.span(),
                                   workspace.bytes.span(),
                                   workspace.bytes.span(),
                                   threads,
                                   expert,
                                   range.tactic}));
  }
  const ConstMatrix written = std::as_const(cell.y).view();
  if (x.rows == 0) {
    cell.comparison.ok = true;
    return cell;
  }
  cell.comparison = judge.compare(kernel, x, written);
  if (const std::string left = find_poison(written); !left.empty()) {
    cell.comparison.ok = false;
    cell.comparison.failure = left;
  }
  if (cell.comparison.ok && !here) {
    GEARSHIFT_TRY(cell.timing, time_on_device(kernel, layer, x, expert, range.tactic));
  } else if (cell.comparison.ok) {
    cell.timing = time_calls([&] { (void)run(layer, x, y, workspace.bytes.span(), threads, expert).ok(); });
  }
  return cell;
}

}  // namespace gearshift
