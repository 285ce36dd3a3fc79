// Kernels as data: what each one accepts (contract), in which packed layout, and the ordered lists they stand in.
//
// A kernel sees one layer and one device. Generic code checks contracts, explains them and draws test shapes from them;
// `run` repeats no check that the contract has made. Kernels, layouts and registries live as long as the program.
#pragma once

#include "gearshift/base.h"
#include "gearshift/device.h"
#include "gearshift/layer.h"

namespace gearshift {

// ---- weights, bound -------------------------------------------------------------------------------------------------

// The stored tensors of one module, as views of mapped checkpoint bytes (any alignment, little-endian).
struct PartWeights {
  int64_t n = 0;
  ByteView weight;
  ByteView scale;                        // in weight.grouping's shape, row-major; empty for float weights
  DType weight_dtype = DType::bf16;      // stored dtype of `weight` (float weights: f32, f16, bf16)
  DType scale_dtype = DType::f32;
  ByteView zero_point;                   // empty: symmetric
  DType zero_point_dtype = DType::i8;
  ByteView group_index;                  // int32 [K]; empty: k / group
  float weight_global = 1;               // tensor-wide scale as stored (WeightScheme::global_divides says the direction)
  float input_scale = 1;                 // tensor-wide activation scalar as stored (ActivationScheme::stored_multiplies)
  int32_t input_zero_point = 0;
  ByteView pre_scale;                    // [K] of pre_scale_dtype; empty: none
  DType pre_scale_dtype = DType::bf16;
  ByteView bias;                         // [n] of bias_dtype; empty: none
  DType bias_dtype = DType::bf16;
};

// The weights of one linear layer, or of one expert: parts lie side by side along N (or interleaved, see the spec).
struct LayerWeights {
  const LayerSpec* spec = nullptr;
  std::vector<PartWeights> parts;
};

// ---- layouts --------------------------------------------------------------------------------------------------------

// A named, versioned packing of a layer's weights and scales. Kernels that share a layout share the packed bytes.
struct Layout {
  std::string_view name;  // "nibbles_rows16"
  int version = 1;
  int64_t (*bytes)(const LayerSpec& layer);                                      // of one linear layer or one expert
  void (*pack)(const LayerWeights& weights, uint8_t* out, int threads);          // writes every one of those bytes; out is 64-byte aligned
  // The inverse, for tests and for proof: codes [N,K], one a byte, and scales in checkpoint order.
  void (*unpack)(const LayerSpec& layer, const uint8_t* packed, uint8_t* codes, uint8_t* scales);
};
// The checkpoint's mapped bytes as they are: no copy, any range may use it. bytes() is 0.
extern const Layout checkpoint_layout;

// ---- contracts ------------------------------------------------------------------------------------------------------

struct Bounds {
  int64_t min = 1;
  int64_t max = 0;       // 0: no limit
  int64_t multiple = 1;
};

// Empty lists mean "no restriction". Every field is checked by refuses() in the order of declaration, but m and the element limits.
struct Contract {
  // stage device
  Isa isa = Isa::portable;                     // CPU kernels: the least instruction set
  std::vector<std::string_view> archs;         // other platforms: exact device codes
  // stage layer
  std::vector<Format> weight_formats;
  std::vector<Storage> storages;
  std::vector<Grouping::Kind> groupings;
  std::vector<int64_t> groups;                 // columns per scale
  std::vector<DType> weight_dtypes;            // of float weights
  std::vector<DType> scale_dtypes;
  std::vector<Format> activation_formats;      // what the *checkpoint* asks for; see Kernel::activation
  std::vector<DType> dtypes;                   // x and y
  Bounds n, k, m;
  int64_t max_weight_elements = int64_t{1} << 40;
  int64_t max_output_elements = int64_t{1} << 40;
  bool zero_points = true, act_order = true, bias = true, experts = true, pre_scale = true, partial_groups = true;
  // facts, not gates
  bool bits_same_for_any_m = false;            // a row's bits do not depend on the other rows
  bool capture_safe = false;                   // may be recorded in a CUDA graph
  std::vector<std::string_view> verified;      // devices it has run on; empty: not verified
};

// ---- kernels --------------------------------------------------------------------------------------------------------

// Which activations enter the product.
enum class ActivationUse : uint8_t {
  as_checkpoint,  // quantized by the checkpoint's recipe (16-bit where it has none)
  float16         // as they come (bf16, fp16, fp32), also where the checkpoint quantizes them
};

// One call: y = x * W^T + bias. All pointers belong to the caller. x and y never overlap.
struct RunArgs {
  const LayerWeights* weights = nullptr;   // layout `checkpoint`; scalars and bias for the others
  const uint8_t* packed = nullptr;         // the kernel's layout; nullptr for `checkpoint`
  ConstMatrix x;                           // [M,K]
  Matrix y;                                // [M,N]; every element is written
  std::span<uint8_t> workspace;            // at least workspace_bytes(...), 64-byte aligned, contents undefined
  int threads = 1;
};

struct Kernel {
  std::string_view name;                   // the stem of its file
  std::string_view backend;                // "native", "emulation", "reference"
  int version = 1;
  Platform platform = Platform::cpu;
  std::vector<Family> families;
  ActivationUse activation = ActivationUse::as_checkpoint;
  std::string_view accumulator = "fp32";   // "fp32", "fp64", "int32"
  const Layout* layout = &checkpoint_layout;
  Contract contract;
  // Error bound per element: |y - ref| <= bound_c * sqrt(K) * bound_u * sum|x||w| + u_out * |ref|.
  double bound_c = 4;
  double bound_u = 0x1p-24;
  int64_t (*workspace_bytes)(const LayerSpec& layer, int64_t m, int threads) = nullptr;
  // Allocates nothing, takes no lock, writes no log line. Any M that the contract allows, 0 included.
  void (*run)(const RunArgs& args) = nullptr;
  std::string_view formula;                // one line: what it computes
};

// One verdict about a kernel: why it may or may not serve a layer.
enum class Stage : uint8_t { policy, build, device, layer, self_check, rank };
std::string_view name(Stage stage);
struct Refusal {
  Stage stage = Stage::layer;
  std::string field, found, wanted, reason;
};
// Checks every contract field but M; nullopt: accepted.
std::optional<Refusal> refuses(const Kernel& kernel, const LayerSpec& layer, const DeviceProfile& device, DType dtype);

// ---- lists ----------------------------------------------------------------------------------------------------------

// One line of a priority list. Position is a claim; `why` says what it rests on.
struct ListEntry {
  const Kernel* kernel = nullptr;
  int64_t m_min = 1, m_max = 0;            // where `auto` prefers it; m_max 0: no bound. Not a limit: that is the contract's
  std::string_view why;
};
struct KernelList {
  Platform platform = Platform::cpu;
  Family family = Family::bf16;
  std::vector<ListEntry> entries;          // in priority order
};
struct Registry {
  std::string_view name = "gearshift";
  std::vector<KernelList> lists;

  // The list of (platform, family); a platform for which nothing is written yet gets the host's references.
  const KernelList* find(Platform platform, Family family) const;
};
const Registry& builtin_registry();
// Backend names a user may write, whether or not a kernel here has them.
std::span<const std::string_view> known_backends();

}  // namespace gearshift
