// Small launches that may start while the one before them ends, on devices that know of it.
#pragma once

#include <cuda_runtime_api.h>

namespace gearshift::cuda {

// Whether the device in use can start a launch early.
inline bool starts_early() {
  static const bool can = [] {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
  }();
  return can;
}

// Queues kernel(arguments). It must wait for the launch before it before it writes anything. False: it was refused.
template <class Arguments>
bool launch_dependent(void (*kernel)(Arguments), dim3 blocks, unsigned threads, void* stream,
                      const Arguments& arguments) {
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &early;
  config.numAttrs = starts_early() ? 1 : 0;
  void* pointers[] = {const_cast<Arguments*>(&arguments)};
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), pointers) == cudaSuccess;
}

}  // namespace gearshift::cuda
