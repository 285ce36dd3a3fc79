// Reads memory and does nothing with it: what a kernel that has to read its weights once cannot beat.
#pragma once

#include <cstdint>

namespace gearshift::cuda {

// Queues a pass over bytes (a multiple of 128 KiB is read, the rest left out). sink: four bytes that are practically
// never written.
bool read_all(const void* memory, int64_t bytes, uint32_t* sink, void* stream);

}  // namespace gearshift::cuda
