// Prepared layer x activations -> output. Picks the batch range and launches; allocates nothing, takes no lock, logs nothing.
#pragma once

#include "gearshift/prepare.h"

namespace gearshift {

// y[M,N] = x[M,K] * W^T + bias with the planned kernel of x.rows; M = 0 returns without a launch.
// `workspace`: at least workspace_bytes(...) for M, 64-byte aligned. `expert`: which one, for expert layers. x, y and workspace
// lie in the memory of that kernel's platform; CUDA kernels are queued on `stream` (a cudaStream_t; nullptr: the default one).
// Error usage: shapes, strides, dtypes or workspace that do not fit; nothing has been written then.
Result<void> run(const PreparedLayer& layer, ConstMatrix x, Matrix y, std::span<uint8_t> workspace, int threads,
                 int64_t expert = 0, void* stream = nullptr);

// Whether x and y of a layer that is planned for `device` would have to lie in host memory: no kernel of the device takes `rows` rows.
bool runs_on_host(const PreparedLayer& layer, const DeviceProfile& device, int64_t rows);
// run() for such a layer with x and y in memory of the device in use: waits for all of its work, computes on copies and returns
// when y is there. Allocates (may throw std::bad_alloc). Error runtime: what the device reports, a stream that is being
// captured included.
Result<void> run_on_host(const PreparedLayer& layer, ConstMatrix x, Matrix y, int threads, int64_t expert = 0);

// run() with a given kernel of the plan's candidates (proof, measurement), by one of its tactics or as it
// chooses; the kernel's layout must be packed.
// REQUIRES: shapes fit and the contract accepts.
void run_kernel(const Kernel& kernel, const PreparedLayer& layer, ConstMatrix x, Matrix y, std::span<uint8_t> workspace,
                int threads, int64_t expert = 0, void* stream = nullptr, std::string_view tactic = {});

}  // namespace gearshift
