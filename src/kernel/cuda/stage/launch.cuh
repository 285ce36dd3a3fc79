// Launches that may start while the one before them on the stream still runs, where the device can do that. Such a
// kernel calls wait_for_previous_launch() before it touches memory that others write.
#pragma once

#include <cuda_runtime_api.h>

namespace gearshift::cuda {

template <class Call>
bool launch_early(void (*kernel)(Call), dim3 blocks, int threads, const Call& call, bool early, cudaStream_t stream) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, call) == cudaSuccess;
}

}  // namespace gearshift::cuda
