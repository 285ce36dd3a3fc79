// Tensor maps of matrices that lie in equal distances: the third dimension of a box says which.
#pragma once

#include "device/tensor_map.h"

namespace gearshift::cuda {

struct StackedBoxes {
  MatrixBoxes matrix;                     // the first one
  int64_t count = 1, distance_bytes = 0;  // the latter on 16
};
// As for one matrix.
bool make_tensor_map(const StackedBoxes& stack, TensorMap& map);

}  // namespace gearshift::cuda
