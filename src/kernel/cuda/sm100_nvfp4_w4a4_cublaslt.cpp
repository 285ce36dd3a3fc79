// NVFP4 by NVFP4 inside cuBLASLt, written to its documented contract. Not verified: it has not run on such a device.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/library_block_scaled.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_block_scaled("sm100_nvfp4_w4a4_cublaslt", Format::e2m1);
  kernel.families = {Family::nvfp4_w4a4};
  return kernel;
}

}  // namespace

const Kernel sm100_nvfp4_w4a4_cublaslt = make();

}  // namespace gearshift
