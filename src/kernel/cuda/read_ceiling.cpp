#include "kernel/cuda/read_ceiling.h"

#include "kernel/cuda/stage/read_all.h"

namespace gearshift::cuda {

#ifdef GEARSHIFT_CUDA_TARGETS
bool queue_read(const void* memory, int64_t bytes, void* sink, void* stream) {
  return read_all(memory, bytes, static_cast<uint32_t*>(sink), stream);
}
#else
bool queue_read(const void*, int64_t, void*, void*) { return false; }
#endif

}  // namespace gearshift::cuda
