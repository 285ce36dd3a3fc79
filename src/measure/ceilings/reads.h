// Loops that read memory once, in several shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gearshift/device.h"

namespace gearshift {

// How one thread walks its share. Which shape reaches the most differs by processor, up to twofold: hardware
// prefetchers follow single loads of the loop. So the ceiling is that of the best one.
struct ReadShape {
  int streams;         // parts of the share that are read side by side, one cache line each in turn
  int prefetch_bytes;  // how far ahead lines are asked for; 0: left to the hardware
  uint64_t (*read)(const uint8_t* bytes, size_t count);  // count: a multiple of 4096; returns a sum of what it read
};

// REQUIRES: this processor executes `isa`.
std::vector<ReadShape> read_shapes(Isa isa);

}  // namespace gearshift
