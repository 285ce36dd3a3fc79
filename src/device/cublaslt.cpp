#include "device/cublaslt.h"

#include <dlfcn.h>

#include "device/cuda.h"

#ifdef GEARSHIFT_CUDA_TARGETS
#include <cublasLt.h>
#endif

namespace gearshift::cuda {

#ifdef GEARSHIFT_CUDA_TARGETS

namespace {

// The functions used, under the names of cublasLt.h.
struct CublasLt {
  decltype(&::cublasLtMatmulDescInit_internal) desc_init = nullptr;
  decltype(&::cublasLtMatrixLayoutInit_internal) layout_init = nullptr;
  decltype(&::cublasLtMatmulPreferenceInit_internal) preference_init = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
  cublasLtHandle_t handle = nullptr;
  size_t version = 0;

  // nullptr where the library, one of its functions, or a device is missing.
  static const CublasLt* get() {
    static const CublasLt library;
    return library.handle == nullptr ? nullptr : &library;
  }

 private:
  CublasLt() {
    void* library = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
      if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) return;
    bool complete = true;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      complete = complete && function != nullptr;
    };
    find(desc_init, "cublasLtMatmulDescInit_internal");
    find(layout_init, "cublasLtMatrixLayoutInit_internal");
    find(preference_init, "cublasLtMatmulPreferenceInit_internal");
    find(desc_set, "cublasLtMatmulDescSetAttribute");
    find(preference_set, "cublasLtMatmulPreferenceSetAttribute");
    find(heuristic, "cublasLtMatmulAlgoGetHeuristic");
    find(matmul, "cublasLtMatmul");
    decltype(&::cublasLtCreate) create = nullptr;
    decltype(&::cublasLtGetVersion) get_version = nullptr;
    find(create, "cublasLtCreate");
    find(get_version, "cublasLtGetVersion");
    if (!complete) return;
    version = get_version();
    if (create(&handle) != CUBLAS_STATUS_SUCCESS) handle = nullptr;
  }
};

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::f8_e4m3:
      return CUDA_R_8F_E4M3;
    case DType::f4:
      return CUDA_R_4F_E2M1;
    case DType::i8:
      return CUDA_R_8I;
    case DType::i32:
      return CUDA_R_32I;
    default:
      return CUDA_R_32F;
  }
}

struct Descriptors {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t a, b, d;
};

bool describe_scales(const CublasLt& lt, const Product& p, Descriptors& out) {
  if (p.scales == ProductScales::none) return true;
  struct Modes {
    cublasLtMatmulMatrixScale_t a, b;
  };
  const Modes modes = p.scales == ProductScales::outer ? Modes{CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F,
                                                               CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F}
                      : p.scales == ProductScales::block128
                          ? Modes{CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F, CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F}
                      : p.scales == ProductScales::vec16
                          ? Modes{CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3, CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3}
                          : Modes{CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0, CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0};
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    return lt.desc_set(&out.operation, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  return set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, modes.a) && set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, modes.b) &&
         set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, p.a_scales) && set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, p.b_scales);
}

// Column-major on paper: D'[n,m] = A'[k,n]^T * B'[k,m], so that all three matrices are those of row-major callers.
bool describe(const CublasLt& lt, const Product& p, Descriptors& out) {
  const bool integer = p.operand == DType::i8;
  const cublasComputeType_t compute = integer                   ? CUBLAS_COMPUTE_32I
                                      : p.operand == DType::f32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                                : CUBLAS_COMPUTE_32F;
  const cublasOperation_t transposed = CUBLAS_OP_T;
  const auto size = [](int64_t v) { return static_cast<uint64_t>(v); };
  return lt.desc_init(&out.operation, sizeof out.operation, compute, integer ? CUDA_R_32I : CUDA_R_32F) ==
             CUBLAS_STATUS_SUCCESS &&
         lt.desc_set(&out.operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed) ==
             CUBLAS_STATUS_SUCCESS &&
         describe_scales(lt, p, out) &&
         lt.layout_init(&out.a, sizeof out.a, type_of(p.operand), size(p.k), size(p.n), p.a_stride) ==
             CUBLAS_STATUS_SUCCESS &&
         lt.layout_init(&out.b, sizeof out.b, type_of(p.operand), size(p.k), size(p.m), p.b_stride) ==
             CUBLAS_STATUS_SUCCESS &&
         lt.layout_init(&out.d, sizeof out.d, type_of(p.out), size(p.n), size(p.m), p.d_stride) ==
             CUBLAS_STATUS_SUCCESS;
}

// The heuristic takes tens of microseconds of the host: what it said is kept, by shape, a few per thread, overwritten
// in turn.
struct KnownAlgorithm {
  int64_t n = 0, k = 0, m = 0, a_stride = 0, b_stride = 0, d_stride = 0;
  DType operand = DType::bf16, out = DType::bf16;
  ProductScales scales = ProductScales::none;
  uintptr_t alignment = 0;
  int64_t workspace = 0;
  cublasLtMatmulAlgo_t algorithm{};
};

uint32_t alignment_of(const void* pointer) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const uintptr_t lowest = address & (~address + 1);
  return lowest == 0 || lowest > 256 ? 256 : static_cast<uint32_t>(lowest);
}

const cublasLtMatmulAlgo_t* choose(const CublasLt& lt, const Product& p, Descriptors& descriptors) {
  constexpr size_t kept = 64;
  static thread_local KnownAlgorithm known[kept];
  static thread_local size_t next = 0;
  const uint32_t aligned[3] = {alignment_of(p.a), alignment_of(p.b), alignment_of(p.d)};
  const uintptr_t alignment = (uintptr_t{aligned[0]} << 40) | (uintptr_t{aligned[1]} << 20) | aligned[2];
  for (const KnownAlgorithm& k : known) {
    if (k.n == p.n && k.k == p.k && k.m == p.m && k.a_stride == p.a_stride && k.b_stride == p.b_stride &&
        k.d_stride == p.d_stride && k.operand == p.operand && k.out == p.out && k.scales == p.scales &&
        k.alignment == alignment && k.workspace == p.workspace_bytes)
      return &k.algorithm;
  }
  cublasLtMatmulPreferenceOpaque_t preference;
  const auto limit = static_cast<uint64_t>(p.workspace_bytes);
  if (lt.preference_init(&preference, sizeof preference) != CUBLAS_STATUS_SUCCESS) return nullptr;
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    return lt.preference_set(&preference, attribute, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
  };
  if (!set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, limit) ||
      !set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, aligned[0]) ||
      !set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, aligned[1]) ||
      !set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, aligned[2]) ||
      !set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, aligned[2]))
    return nullptr;
  cublasLtMatmulHeuristicResult_t result;
  int count = 0;
  if (lt.heuristic(lt.handle, &descriptors.operation, &descriptors.a, &descriptors.b, &descriptors.d, &descriptors.d,
                   &preference, 1, &result, &count) != CUBLAS_STATUS_SUCCESS ||
      count == 0)
    return nullptr;
  KnownAlgorithm& k = known[next++ % kept];
  k = {p.n,       p.k,   p.m,      p.a_stride, p.b_stride,        p.d_stride,
       p.operand, p.out, p.scales, alignment,  p.workspace_bytes, result.algo};
  return &k.algorithm;
}

}  // namespace

bool has_cublaslt() { return CublasLt::get() != nullptr; }

std::string cublaslt_version() {
  const CublasLt* lt = CublasLt::get();
  if (lt == nullptr) return "";
  const size_t v = lt->version;
  return std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." + std::to_string(v % 100);
}

bool multiply(const Product& p) {
  const CublasLt* lt = CublasLt::get();
  Descriptors descriptors;
  if (lt == nullptr || !describe(*lt, p, descriptors)) return false;
  const cublasLtMatmulAlgo_t* algorithm = choose(*lt, p, descriptors);
  if (algorithm == nullptr) return false;
  const float zero = 0;
  const int32_t one_integer = 1, zero_integer = 0;
  const bool integer = p.operand == DType::i8;
  const void *alpha = &p.alpha, *beta = &zero;
  if (integer) {
    alpha = &one_integer;
    beta = &zero_integer;
  }
  return lt->matmul(lt->handle, &descriptors.operation, alpha, p.a, &descriptors.a, p.b, &descriptors.b, beta, p.d,
                    &descriptors.d, p.d, &descriptors.d, algorithm, p.workspace, static_cast<size_t>(p.workspace_bytes),
                    static_cast<cudaStream_t>(p.stream)) == CUBLAS_STATUS_SUCCESS;
}

bool has_algorithm(const Product& p) {
  const CublasLt* lt = CublasLt::get();
  Descriptors descriptors;
  return lt != nullptr && describe(*lt, p, descriptors) && choose(*lt, p, descriptors) != nullptr;
}

#else

bool has_cublaslt() { return false; }
std::string cublaslt_version() { return ""; }
bool multiply(const Product&) { return false; }
bool has_algorithm(const Product&) { return false; }

#endif

}  // namespace gearshift::cuda
