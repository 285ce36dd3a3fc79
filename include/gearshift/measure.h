// Runs kernels to learn something: are the numbers right, how long does it take.
#pragma once

#include "gearshift/run.h"

namespace gearshift {

// Output of one kernel against the float64 reference of the arithmetic that ran. Relative errors are ||y-ref||/||ref||.
struct Comparison {
  bool ok = false;
  double relative_error = 0;  // whole matrix (reported; rows and columns decide)
  double tolerance = 0;       // the bound that corresponds to the worst row's magnitude
  double worst_row = 0;       // the same quotient per row and per column: the largest
  double worst_column = 0;
  std::optional<double> divergence;  // against the checkpoint's own arithmetic, where the kernel's differs
  int64_t infinite = 0;  // judged outputs that are infinite because the reference leaves the type's range, too
  std::string failure;   // "" or the first failure: "row 3, column 7: 0.12 instead of 0.10, 0.004 allowed"
};

// What one kernel showed at one batch size.
struct Proof {
  const Kernel* kernel = nullptr;
  int64_t m = 0;
  Comparison comparison;
};
// Runs `kernel` on `layer` with made-up activations of M rows (outliers, zeros, a zero row, denormals) and judges it:
// poisoned output and scratch, canaries around both, the bound of kernel.h per element. All rows are judged when M is
// small, otherwise a sample (first, last, tile edges, random; at least 32), every column; poison is looked for
// everywhere. Nothing is timed. REQUIRES: the kernel's layout is packed.
Proof prove(const Kernel& kernel, const PreparedLayer& layer, int64_t m, DType dtype, uint64_t seed, int threads,
            int64_t expert = 0, std::string_view tactic = {});

// Batch sizes worth proving in [m_min, m_max]: both edges, one off multiples of 8, those of `batch` inside.
std::vector<int64_t> probe_sizes(int64_t m_min, int64_t m_max, const std::vector<int64_t>& batch);

struct Timing {
  double median_us = 0, p10_us = 0, p90_us = 0;
  int samples = 0;
  double error_us = 0;  // standard error of the median
};

// What a machine can do at most, measured beside the kernels that are held against it.
struct Ceiling {
  std::string name;                    // "dram", "fp32", "bf16", "int8"
  std::string unit;                    // "GB/s", "GFLOP/s", "GOP/s"
  std::string instruction;             // what it was measured with
  double value = 0, p10 = 0, p90 = 0;  // median and percentiles of the samples
  int samples = 0;
};

// One measured row of run --json and verify --json.
struct Measurement {
  std::string layer, family, scheme, arithmetic;
  int64_t n = 0, k = 0, m = 0;
  std::string kernel, backend, tactic;
  std::optional<Timing> timing;
  double gbytes_per_s = 0, tflops = 0;
  uint64_t weight_bytes = 0;
  Comparison comparison;
};

}  // namespace gearshift
