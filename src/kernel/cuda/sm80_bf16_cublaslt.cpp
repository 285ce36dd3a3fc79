// y = x * W^T + bias for bf16 weights and activations: cuBLASLt on the weights as they lie.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/library_float.h"

namespace gearshift {

const Kernel sm80_bf16_cublaslt = make_cuda_float_product("sm80_bf16_cublaslt", DType::bf16);

}  // namespace gearshift
