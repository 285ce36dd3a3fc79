// MXFP8 by MXFP8 inside cuBLASLt, written to its documented contract. Not verified: it has not run on such a device.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/library_block_scaled.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_cuda_block_scaled("sm100_mxfp8_cublaslt", Format::e4m3);
  kernel.families = {Family::mxfp8};
  return kernel;
}

}  // namespace

const Kernel sm100_mxfp8_cublaslt = make();

}  // namespace gearshift
