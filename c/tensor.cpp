#include "tensor.h"

#include <array>
#include <cstdint>

#include "base/try.h"

namespace gearshift::c {

namespace {

// Source: dlpack.h of DLPack 1.1, DLDataTypeCode and DLDeviceType.
constexpr int32_t dl_cpu = 1, dl_cuda = 2, dl_cuda_host = 3, dl_cuda_managed = 13;
struct TypeRow {
  uint8_t code, bits;
  DType dtype;
};
constexpr std::array<TypeRow, 18> types = {{
    {0, 8, DType::i8},
    {0, 16, DType::i16},
    {0, 32, DType::i32},
    {0, 64, DType::i64},
    {1, 8, DType::u8},
    {1, 16, DType::u16},
    {1, 32, DType::u32},
    {1, 64, DType::u64},
    {2, 16, DType::f16},
    {2, 32, DType::f32},
    {2, 64, DType::f64},
    {4, 16, DType::bf16},
    {6, 8, DType::boolean},
    {10, 8, DType::f8_e4m3},
    {12, 8, DType::f8_e5m2},
    {14, 8, DType::f8_e8m0},
    {15, 6, DType::f6_e2m3},
    {16, 6, DType::f6_e3m2},
}};

std::string device_text(int32_t type, int32_t id) {
  if (type == dl_cpu || type == dl_cuda_host) return "host memory";
  if (type == dl_cuda || type == dl_cuda_managed) return "cuda:" + std::to_string(id);
  return "DLPack device type " + std::to_string(type);
}

bool is_on_host(const gearshift_tensor& tensor) {
  return tensor.device_type == dl_cpu || tensor.device_type == dl_cuda_host;
}

bool is_on(const gearshift_tensor& tensor, const DeviceProfile& device) {
  if (device.platform == Platform::cpu) return is_on_host(tensor);
  return (tensor.device_type == dl_cuda || tensor.device_type == dl_cuda_managed) && tensor.device_id == device.index;
}

Shape shape_of(const gearshift_tensor& tensor) { return {tensor.shape, tensor.shape + tensor.ndim}; }

Result<void> check_form(std::string_view subject, const gearshift_tensor& tensor) {
  if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
    return misused(std::string(subject), std::to_string(tensor.ndim) + " dimensions without a shape",
                   "a DLPack tensor");
  int64_t elements = 1;
  for (const int64_t extent : shape_of(tensor)) {
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements))
      return misused(std::string(subject), "shape " + to_string(shape_of(tensor)), "a shape that memory can hold");
  }
  if (tensor.data == nullptr && elements > 0) return misused(std::string(subject), "a null pointer", "data");
  return {};
}

// Elements from one item of dimension `axis` to the next.
int64_t stride_of(const gearshift_tensor& tensor, int32_t axis) {
  if (tensor.strides != nullptr) return tensor.strides[axis];
  int64_t stride = 1;
  for (int32_t i = tensor.ndim - 1; i > axis; --i) stride *= tensor.shape[i];
  return stride;
}

std::string stride_text(int64_t stride) { return "rows " + std::to_string(stride) + " elements apart"; }

// Bytes from the first element to behind the last one.
bool span_bytes(const Matrix& m, int64_t& bytes) {
  bytes = 0;
  return m.rows == 0 || (!__builtin_mul_overflow(m.rows - 1, m.stride, &bytes) &&
                         !__builtin_add_overflow(bytes, m.cols, &bytes) &&
                         !__builtin_mul_overflow(bytes, int64_t{bits(m.dtype) / 8}, &bytes));
}

// Strides and addresses are the producer's word; what no memory can be is refused here.
Result<void> check_memory(const std::string& subject, const Matrix& m) {
  const auto address = reinterpret_cast<uintptr_t>(m.data);
  int64_t bytes = 0;
  if (!span_bytes(m, bytes) || address + static_cast<uintptr_t>(bytes) < address)
    return misused(subject, stride_text(m.stride), "memory that exists");
  const auto size = static_cast<uintptr_t>(bits(m.dtype) / 8);
  if (address % size != 0)
    return misused(subject, "an address that is not a multiple of " + std::to_string(size), "aligned elements",
                   "copy it");
  return {};
}

uint8_t* data_of(const gearshift_tensor& tensor) {
  return tensor.data == nullptr ? nullptr : static_cast<uint8_t*>(tensor.data) + tensor.byte_offset;
}

}  // namespace

Result<DType> dtype_of(std::string_view subject, uint8_t code, uint8_t bits) {
  for (const TypeRow& row : types) {
    if (row.code == code && row.bits == bits) return row.dtype;
  }
  return misused(std::string(subject), "DLPack type " + std::to_string(code) + " of " + std::to_string(bits) + " bits",
                 "a type that checkpoints have");
}

DLType dl_type_of(DType dtype) {
  for (const TypeRow& row : types) {
    if (row.dtype == dtype) return {row.code, row.bits};
  }
  return {0, 0};
}

Result<Matrix> matrix_of(std::string_view subject, const gearshift_tensor& tensor, const DeviceProfile& device) {
  const std::string s(subject);
  GEARSHIFT_CHECK(check_form(subject, tensor));
  if (!is_on(tensor, device)) {
    return misused(s, device_text(tensor.device_type, tensor.device_id),
                   device_text(device.platform == Platform::cpu ? dl_cpu : dl_cuda, device.index),
                   "the layer was planned for " + device.name + "; the option device says where a layer runs");
  }
  GEARSHIFT_TRY(const DType dtype, dtype_of(subject, tensor.dtype_code, tensor.dtype_bits));
  if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
    return misused(s, std::string(name(dtype)), "F32, F16 or BF16");
  if (tensor.dtype_lanes != 1) return misused(s, std::to_string(tensor.dtype_lanes) + " lanes", "1");
  if (tensor.ndim < 1) return misused(s, "no dimensions", "[..., columns]");
  Matrix matrix;
  matrix.data = data_of(tensor);
  matrix.dtype = dtype;
  const int32_t last = tensor.ndim - 1;
  matrix.cols = matrix.stride = tensor.shape[last];
  matrix.rows = 1;
  for (int32_t axis = 0; axis < last; ++axis) matrix.rows *= tensor.shape[axis];
  if (matrix.rows == 0) return matrix;  // whose strides mean nothing
  if (matrix.cols > 1 && stride_of(tensor, last) != 1)
    return misused(s, "elements of a row " + std::to_string(stride_of(tensor, last)) + " apart", "rows without holes",
                   "make it contiguous");
  // From the last leading dimension outwards: each must go on where the inner ones end.
  int64_t next = 0;  // the stride that a further dimension must have; 0: no row yet
  for (int32_t axis = last - 1; axis >= 0; --axis) {
    const int64_t extent = tensor.shape[axis];
    if (extent == 1) continue;
    const int64_t stride = stride_of(tensor, axis);
    if (next == 0) {
      matrix.stride = stride;
    } else if (stride != next) {
      return misused(s, "leading dimensions that do not lie one behind the other", "rows at equal distances",
                     "make it contiguous");
    }
    if (__builtin_mul_overflow(stride, extent, &next)) return misused(s, stride_text(stride), "memory that exists");
  }
  if (matrix.rows > 1 && matrix.stride < matrix.cols)
    return misused(s, stride_text(matrix.stride), std::to_string(matrix.cols) + " or more", "make it contiguous");
  if (matrix.stride < matrix.cols) matrix.stride = matrix.cols;
  GEARSHIFT_CHECK(check_memory(s, matrix));
  return matrix;
}

Result<TensorInMemory> in_host_memory(const std::string& name, const gearshift_tensor& tensor) {
  GEARSHIFT_CHECK(check_form(name, tensor));
  if (!is_on_host(tensor))
    return misused(name, device_text(tensor.device_type, tensor.device_id), "host memory", "copy it to the CPU");
  GEARSHIFT_TRY(const DType dtype, dtype_of(name, tensor.dtype_code, tensor.dtype_bits));
  if (tensor.dtype_lanes != 1 || bits(dtype) % 8 != 0) return misused(name, "packed elements", "whole bytes");
  TensorInMemory result{name, dtype, shape_of(tensor), {}};
  int64_t elements = 1, wanted = 1;
  for (const int64_t extent : result.shape) elements *= extent;
  for (int32_t axis = tensor.ndim - 1; axis >= 0; --axis) {
    if (elements > 0 && tensor.shape[axis] > 1 && stride_of(tensor, axis) != wanted)
      return misused(name, "elements that are apart", "a contiguous tensor", "make it contiguous");
    wanted *= tensor.shape[axis];
  }
  int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, static_cast<int64_t>(bits(dtype) / 8), &bytes))
    return misused(name, "shape " + to_string(result.shape), "a shape that memory can hold");
  result.data = ByteView(data_of(tensor), static_cast<size_t>(bytes));
  return result;
}

bool overlap(const Matrix& a, const Matrix& b) {
  int64_t a_bytes = 0, b_bytes = 0;
  if (!span_bytes(a, a_bytes) || !span_bytes(b, b_bytes) || a_bytes == 0 || b_bytes == 0) return false;
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data), begin_b = reinterpret_cast<uintptr_t>(b.data);
  return begin_a < begin_b + static_cast<uintptr_t>(b_bytes) && begin_b < begin_a + static_cast<uintptr_t>(a_bytes);
}

}  // namespace gearshift::c
