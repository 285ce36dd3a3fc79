// Tensors of callers (DLPack) as Gearshift sees them.
#pragma once

#include "border.h"

namespace gearshift::c {

// Error usage: a type that Gearshift has no word for.
Result<DType> dtype_of(std::string_view subject, uint8_t code, uint8_t bits);
struct DLType {
  uint8_t code, bits;
};
DLType dl_type_of(DType dtype);

// Rows of x or y: leading dimensions taken together. Errors usage: device, type, dimensions, strides that keep the
// elements of a row or the rows of leading dimensions apart.
Result<Matrix> matrix_of(std::string_view subject, const gearshift_tensor& tensor, const DeviceProfile& device);

// A tensor in host memory without holes. `name` is of the result.
Result<TensorInMemory> in_host_memory(const std::string& name, const gearshift_tensor& tensor);

// Whether two matrices share a byte between their first and their last one.
bool overlap(const Matrix& a, const Matrix& b);

}  // namespace gearshift::c
