// What Hopper's copy engine needs to know of a matrix in device memory.
#pragma once

#include <cstdint>

namespace gearshift::cuda {

struct alignas(64) TensorMap {
  uint8_t bytes[128] = {};
};

// A row-major matrix of 1-, 2- or 8-byte elements that is copied in boxes. Address and row pitch on 16 bytes, at most
// 256 elements and rows a box. Swizzled: rows of a box are 128 bytes, their 16-byte pieces permuted as tensor-core
// instructions read them.
struct MatrixBoxes {
  const void* data = nullptr;
  int element_bytes = 1;
  int64_t columns = 0, rows = 0, pitch_bytes = 0;
  int box_columns = 0, box_rows = 0;
  bool swizzled = false;
};

// False where the driver has no tensor maps or refuses this one. Touches no device memory.
bool make_tensor_map(const MatrixBoxes& matrix, TensorMap& map);

}  // namespace gearshift::cuda
