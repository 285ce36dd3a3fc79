#include "device/stacked_map.h"

#ifdef GEARSHIFT_CUDA_TARGETS
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#endif

namespace gearshift::cuda {

#ifdef GEARSHIFT_CUDA_TARGETS

namespace {

using EncodeTiled = decltype(&cuTensorMapEncodeTiled);

// Through the run-time library, so that nothing links the driver's.
EncodeTiled encode_tiled() {
  static const EncodeTiled function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result) !=
            cudaSuccess ||
        result != cudaDriverEntryPointSuccess)
      return EncodeTiled{};
    return reinterpret_cast<EncodeTiled>(found);
  }();
  return function;
}

bool encode_map(const StackedBoxes& stack, unsigned dimensions, TensorMap& map) {
  const MatrixBoxes& matrix = stack.matrix;
  const EncodeTiled encode = encode_tiled();
  if (encode == nullptr) return false;
  // Bytes are copied as they are; the type says only how many an element has.
  const CUtensorMapDataType type = matrix.element_bytes == 8   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT64
                                   : matrix.element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                                               : CU_TENSOR_MAP_DATA_TYPE_UINT8;
  const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(matrix.columns), static_cast<cuuint64_t>(matrix.rows),
                               static_cast<cuuint64_t>(stack.count)};
  const cuuint64_t pitch[2] = {static_cast<cuuint64_t>(matrix.pitch_bytes),
                               static_cast<cuuint64_t>(stack.distance_bytes)};
  const cuuint32_t box[3] = {static_cast<cuuint32_t>(matrix.box_columns), static_cast<cuuint32_t>(matrix.box_rows), 1};
  const cuuint32_t step[3] = {1, 1, 1};
  CUtensorMap made;
  if (encode(&made, type, dimensions, const_cast<void*>(matrix.data), sizes, pitch, box, step,
             CU_TENSOR_MAP_INTERLEAVE_NONE, matrix.swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    return false;
  static_assert(sizeof made == sizeof map.bytes);
  std::memcpy(map.bytes, &made, sizeof made);
  return true;
}

}  // namespace

bool make_tensor_map(const MatrixBoxes& matrix, TensorMap& map) { return encode_map({matrix}, 2, map); }
bool make_tensor_map(const StackedBoxes& stack, TensorMap& map) { return encode_map(stack, 3, map); }

#else

bool make_tensor_map(const MatrixBoxes&, TensorMap&) { return false; }
bool make_tensor_map(const StackedBoxes&, TensorMap&) { return false; }

#endif

}  // namespace gearshift::cuda
