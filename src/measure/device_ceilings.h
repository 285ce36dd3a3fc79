// What a CUDA device can do at most: reading memory, and products of matrices as its vendor's library makes them.
#pragma once

#include <optional>

#include "device/cuda.h"
#include "gearshift/measure.h"

namespace gearshift {

class DeviceCeilings {
 public:
  // Error runtime: not enough memory for what is read and multiplied.
  static Result<DeviceCeilings> make();
  Result<void> sample();
  // "read start" (us: what a kernel that only reads takes besides its bytes), "dram" (GB/s beyond that), "bf16".
  // REQUIRES: sample() was called.
  std::vector<Ceiling> ceilings() const;

 private:
  Result<double> read_us(int64_t bytes, std::optional<cuda::Graph>& graph);
  Result<double> product_us();

  DeviceBuffer memory_, sink_;
  std::optional<cuda::Graph> small_, large_, product_;
  std::vector<double> start_us_, gbytes_per_s_, bf16_;
};

}  // namespace gearshift
