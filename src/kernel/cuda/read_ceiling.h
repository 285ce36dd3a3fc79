// The least that reading memory takes: what kernels of this folder are held against.
#pragma once

#include <cstdint>

namespace gearshift::cuda {

// Queues a kernel that reads `bytes` bytes (a multiple of 128 KiB) once and writes nothing; `sink`: four bytes that it
// never reaches. False in a build without CUDA code.
bool queue_read(const void* memory, int64_t bytes, void* sink, void* stream);

}  // namespace gearshift::cuda
