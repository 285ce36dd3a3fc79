// One matrix product of cuBLASLt, which is opened at run time: nothing links it.
#pragma once

#include "gearshift/base.h"

namespace gearshift::cuda {

// D[M,N] = alpha * B[M,K] * A[N,K]^T, all row-major with strides in elements; accumulated in fp32. `operand`: bf16,
// f16, or f32 (multiplied as TF32: 10 bits of mantissa). Output bf16, f16 or f32.
struct Product {
  const void* a = nullptr;  // weights
  const void* b = nullptr;  // activations
  void* d = nullptr;
  int64_t n = 0, k = 0, m = 0;
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;
  DType operand = DType::bf16, out = DType::bf16;
  float alpha = 1;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
  void* stream = nullptr;
};
// What `workspace_bytes` should be.
inline constexpr int64_t cublaslt_workspace_bytes = int64_t{32} << 20;

// Queues the product; no allocation on the device, so it may be captured. False when cuBLASLt has no algorithm for it:
// operands must start on 16 bytes and rows be a multiple of 16 bytes apart.
bool multiply(const Product& product);

}  // namespace gearshift::cuda
