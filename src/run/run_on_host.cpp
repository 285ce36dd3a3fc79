// Host memory for calls whose kernel runs on the host while x and y lie on a device.
#include "base/try.h"
#include "device/cuda.h"
#include "gearshift/run.h"

namespace gearshift {

namespace {

size_t row_bytes(DType dtype, int64_t elements) {
  return static_cast<size_t>(elements) * (dtype == DType::f32 ? sizeof(float) : sizeof(uint16_t));
}

}  // namespace

bool runs_on_host(const PreparedLayer& layer, const DeviceProfile& device, int64_t rows) {
  return rows > 0 && device.platform != Platform::cpu &&
         range_for(*layer.plan->decision, rows).kernel->platform == Platform::cpu;
}

Result<void> run_on_host(const PreparedLayer& layer, ConstMatrix x, Matrix y, int threads, int64_t expert) {
  GEARSHIFT_CHECK(cuda::synchronize());
  const auto rows = static_cast<size_t>(x.rows);
  const size_t x_bytes = row_bytes(x.dtype, x.cols), y_bytes = row_bytes(y.dtype, y.cols);
  AlignedBuffer x_copy(rows * x_bytes), y_copy(static_cast<size_t>(y.rows) * y_bytes);
  AlignedBuffer workspace(static_cast<size_t>(workspace_bytes(*layer.plan, x.rows, threads)));
  GEARSHIFT_CHECK(cuda::copy_rows(x_copy.data(), x_bytes, x.data, row_bytes(x.dtype, x.stride), x_bytes, rows));
  GEARSHIFT_CHECK(run(layer, {x_copy.data(), x.dtype, x.rows, x.cols, x.cols},
                      {y_copy.data(), y.dtype, y.rows, y.cols, y.cols}, workspace.span(), threads, expert));
  GEARSHIFT_CHECK(cuda::copy_rows(y.data, row_bytes(y.dtype, y.stride), y_copy.data(), y_bytes, y_bytes, rows));
  return cuda::synchronize();
}

}  // namespace gearshift
