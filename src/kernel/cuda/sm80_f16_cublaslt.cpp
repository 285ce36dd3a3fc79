// y = x * W^T + bias for fp16 weights and activations: cuBLASLt on the weights as they lie.
#include "kernel/cuda/kernels.h"
#include "kernel/cuda/library_float.h"

namespace gearshift {

const Kernel sm80_f16_cublaslt = make_cuda_float_product("sm80_f16_cublaslt", DType::f16);

}  // namespace gearshift
