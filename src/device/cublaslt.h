// One matrix product of cuBLASLt, which is opened at run time: nothing links it.
#pragma once

#include "gearshift/base.h"

namespace gearshift::cuda {

// How 8- and 4-bit operands are scaled inside the product.
enum class ProductScales : uint8_t {
  none,
  outer,     // fp32 [N] of A and [M] of B (sm_90)
  block128,  // A: fp32 [N / 128][K / 128 rounded up to 4]; B: [K / 128][M], M a multiple of 4 (sm_90)
  vec16,     // e4m3 per 16 columns, in tiles of 128 rows x 4 (sm_100 on; operands of 4 bits)
  vec32      // e8m0 per 32 columns, likewise
};

// D[M,N] = alpha * B[M,K] * A[N,K]^T, all row-major with strides in elements; accumulated in fp32. `operand`: bf16,
// f16, f32 (multiplied as TF32: 10 bits of mantissa), f8_e4m3, f4 (e2m1), or i8 (accumulated in int32, which is then
// `out`). Output bf16, f16 or f32.
struct Product {
  const void* a = nullptr;  // weights
  const void* b = nullptr;  // activations
  void* d = nullptr;
  int64_t n = 0, k = 0, m = 0;
  int64_t a_stride = 0, b_stride = 0, d_stride = 0;
  DType operand = DType::bf16, out = DType::bf16;
  float alpha = 1;  // 1 for i8
  ProductScales scales = ProductScales::none;
  const void *a_scales = nullptr, *b_scales = nullptr;
  void* workspace = nullptr;
  int64_t workspace_bytes = 0;
  void* stream = nullptr;
};
// What `workspace_bytes` should be.
inline constexpr int64_t cublaslt_workspace_bytes = int64_t{32} << 20;
// Where its workspace and operands begin; callers of kernels promise 64.
inline constexpr int64_t cublaslt_alignment = 256;

// Queues the product; no allocation on the device, so it may be captured. False when cuBLASLt has no algorithm for it:
// operands must start on 16 bytes and rows be a multiple of 16 bytes apart.
bool multiply(const Product& product);
// Whether it has one, without queuing anything.
bool has_algorithm(const Product& product);

}  // namespace gearshift::cuda
