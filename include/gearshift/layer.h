// What a linear layer of a checkpoint *is*: names, shape, and how weights and activations are quantized on disk.
// Decided from the checkpoint alone (tensor names, dtypes, shapes, quantization config), never from a device.
//
// y[M,N] = x[M,K] * W[N,K]^T + bias[N].
#pragma once

#include <memory>

#include "gearshift/base.h"

namespace gearshift {

class Checkpoint;  // gearshift/checkpoint.h

// How one element of a weight or activation is coded. The names are the words of plans ("float", "e4m3", "int4", "uint4").
// uint: codes with an explicit zero point as GPTQ, AWQ and AutoRound store them; int: all other integer writers.
enum class Format : uint8_t {
  float_, e4m3, e5m2, e2m1, e2m3, e3m2,
  int2, int3, int4, int5, int6, int7, int8,
  uint2, uint3, uint4, uint5, uint6, uint7, uint8
};
std::string_view name(Format format);
int bits(Format format);  // bits of one code; 0 for float_ (the stored dtype says)

// The key of a priority list.
enum class Family : uint8_t {
  bf16, w8a16_fp8, fp8_w8a8, fp8_block_w8a8, mxfp8, mxfp6, mxfp4, nvfp4_w4a4, nvfp4_w4a16, int8_w8a8, mixed_precision, w4a8
};
std::string_view name(Family family);
std::optional<Family> parse_family(std::string_view name);
std::span<const Family> all_families();

// Which weights share one scale.
struct Grouping {
  enum class Kind : uint8_t {
    tensor,     // one scale
    row,        // one per output row
    group,      // one per `cols` columns of a row; the last group may be short
    whole_row,  // the checkpoint says "one group a row" (group -1)
    block       // one per rows x cols tile; edge tiles may be partial
  };
  Kind kind = Kind::tensor;
  int64_t rows = 1, cols = 0;
  bool operator==(const Grouping&) const = default;
};
std::string_view name(Grouping::Kind kind);

// How the codes of a weight lie in the checkpoint (formats.md sections 2-9).
enum class Storage : uint8_t {
  dense,               // one element per byte or float, [N,K] row-major
  nibbles,             // two codes a byte along K, low nibble first, [N,K/2]
  dense_bits,          // b-bit codes in a little-endian bit stream along K, int32 words, offset by 2^(b-1) (compressed-tensors)
  word_bits,           // the same, floor(32/b) codes a word (compressed-tensors before mid-2026; b = 3, 5, 6, 7)
  gptq_v1,             // [K*b/32, N] int32, packed along K; zero points stored minus one
  gptq_v2,             // the same, zero points as they are
  awq,                 // [K, N*4/32] int32, nibbles interleaved 0 2 4 6 1 3 5 7 along N
  rows_in_byte,        // ModelOpt INT4-AWQ: [N/2, K], low nibble = row 2n, high = 2n+1, two's complement
  quark_order,         // Quark INT4: [K, N/8] int32, sequential along N
  quark_reorder,       // the same, AWQ's interleave
  fp6_bytes,           // four 6-bit codes in three bytes along K
  dense_transposed     // float expert stacks of older writers: [K,N] row-major, y = x * W
};
std::string_view name(Storage storage);

// How a block's scale is made from its largest magnitude (formats.md 12.2, 12.3); for activations quantized at run time.
enum class ScaleRule : uint8_t {
  amax,          // s = amax / largest code
  amax_pow2,     // the same, rounded up to a power of two (ue8m0)
  e8m0_floor,    // OCP
  e8m0_ceil,
  e8m0_even      // compressed-tensors, Quark "even"
};

struct WeightScheme {
  Format format = Format::float_;
  Storage storage = Storage::dense;
  Grouping grouping;
  bool symmetric = true;
  DType scale = DType::f32;       // stored dtype of the scales: f32, f16, bf16, f8_e4m3, f8_e8m0 (also where stored as U8 exponents)
  bool global_scale = false;      // a second, tensor-wide scale
  bool global_divides = false;    // w = code * scale / global (compressed-tensors) instead of code * scale * global (ModelOpt)
  bool act_order = false;         // columns belong to groups by an index tensor
  bool operator==(const WeightScheme&) const = default;
};

enum class Granularity : uint8_t { tensor, token, token_group };
std::string_view name(Granularity granularity);

struct ActivationScheme {
  Format format = Format::e4m3;
  bool dynamic = true;            // scales made at run time (also NVFP4's "local")
  Granularity granularity = Granularity::token;
  int64_t group = 0;              // columns per scale; 0 unless granularity is token_group
  bool symmetric = true;
  bool stored_scale = false;      // a tensor-wide scalar comes from the checkpoint (static scale; NVFP4's global scale)
  bool stored_multiplies = false; // x is multiplied by that scalar before coding (compressed-tensors NVFP4), else divided
  ScaleRule rule = ScaleRule::amax;
  float amax_limit = 0;           // upper bound on amax (fbgemm_fp8); 0: none
  bool operator==(const ActivationScheme&) const = default;
};

struct Scheme {
  bool quantized = false;
  WeightScheme weight;
  std::optional<ActivationScheme> activation;  // nullopt: 16-bit activations
  bool pre_scale = false;                      // x is multiplied column-wise by a stored vector first (pre_quant_scale)
  bool operator==(const Scheme&) const = default;
};
Family family_of(const Scheme& scheme);

// What a stored tensor is to its layer.
enum class TensorRole : uint8_t {
  weight, weight_scale, weight_zero_point, weight_global_scale, weight_group_index,
  weight_shape,  // {N, K} as the writer states them
  input_scale, input_zero_point, pre_scale, low_rank_a, low_rank_b, bias
};
struct StoredTensor {
  TensorRole role = TensorRole::weight;
  std::string name;  // in the checkpoint
  DType dtype = DType::f32;
  Shape shape;
};

// One module of the checkpoint: what the file calls a linear layer.
struct Module {
  std::string name;
  int64_t n = 0;  // its output rows
  std::vector<StoredTensor> tensors;
};

enum class LayerKind : uint8_t { linear, experts };
std::string_view name(LayerKind kind);

// How a row's outputs come from its parts.
enum class RowOrder : uint8_t { concatenated, interleaved /* gpt-oss: row 2i gate, 2i+1 up */ };

struct LayerSpec;

// Which dimension tensor parallelism divides: outputs (N), inputs (K), or neither (every rank holds the whole layer).
enum class Split : uint8_t { none, column, row };
std::string_view name(Split split);

// What a layer is a part of, where a tensor-parallel rank holds only that part.
struct Shard {
  int64_t tp = 1;
  Split split = Split::none;
  bool uneven = false;                     // the dimension does not divide: the last rank has less, zeros fill it up
  bool offset = false;                     // some rank begins inside a scale group or block of the whole layer
  bool aligned = false;                    // filled up so that every rank begins with a scale tile
  std::shared_ptr<const LayerSpec> whole;  // before the split
};

// One row of a plan. Linear: modules.size() parts side by side along N. Experts: `experts` times the parts, expert-major
// (modules[e * parts + p]); or, stored as one stack (`stacked`), a single module whose tensors have a leading expert axis.
struct LayerSpec {
  std::string name;
  std::vector<std::string> parts;  // module names shown to the user ("*" for an expert's number); [] when nothing was fused
  LayerKind kind = LayerKind::linear;
  int64_t experts = 0;             // how many the row holds; 0 for linear
  bool stacked = false;
  RowOrder row_order = RowOrder::concatenated;
  Family family = Family::bf16;
  int64_t n = 0, k = 0;            // of the row (of one expert), before padding
  bool bias = false;
  Scheme scheme;
  std::vector<Module> modules;
  uint64_t weight_bytes = 0;       // codes and scales as stored, tensor-wide scalars left out
  std::optional<Shard> shard;      // set by shard(): n, k, modules and bytes are those of one rank
};

// A module whose scheme Gearshift recognises and does not load.
struct UnknownModule {
  std::string name;
  std::string scheme;  // "bitsandbytes 4 bit (nf4)"
};

struct ModelLayers {
  std::string architecture;              // config.json architectures[0]; "" when unknown
  std::string model_type;                // config.json model_type, the text model's where it has its own; "" when unknown
  std::string quant_method;              // "" when there is no quantization config
  DType dtype = DType::bf16;             // activations: config.json dtype / torch_dtype
  std::vector<LayerSpec> layers;         // unfused: one per module, natural order of names
  std::vector<std::string> skipped;      // modules with a matrix that are no linear layers (embeddings, norms, convolutions)
  std::vector<UnknownModule> unknown;    // filled only when `allow_unknown`
};
// Reads config and headers, no weight byte. Errors: damaged_checkpoint, unsupported_scheme (unless allow_unknown:
// then the modules concerned are listed in `unknown`).
Result<ModelLayers> read_layers(const Checkpoint& checkpoint, bool allow_unknown = false);

// Joins siblings as serving engines do (q/k/v -> qkv_proj, gate/up -> gate_up_proj, w1/w3 -> w13, query/key/value -> qkv;
// experts of a layer -> one row each for gate_up and down). Any two or more present siblings with equal K and scheme
// join; nothing else does. Order: natural; a fused row stands where its first part would.
std::vector<LayerSpec> fuse(std::vector<LayerSpec> layers);

// What one of `tp` ranks holds of a layer. q, k, v, gate, up, in_proj and heads divide by columns of y, each part on its
// own; o, out, down and w2 by columns of x; all others not at all. Ranks have equal shapes, those of the first; with an
// index tensor (act-order) each keeps the whole scale table. REQUIRES: tp >= 1, layer.shard is not set.
LayerSpec shard(const LayerSpec& layer, int64_t tp);

// Layers with equal keys get equal decisions: family, shape, parts' row counts, scheme, bias, experts.
std::string layer_class(const LayerSpec& layer);

// The preset of compressed-tensors that means this scheme ("NVFP4", "FP8_DYNAMIC", "UNQUANTIZED"), else the words of weights
// and activations: "int3 group 128, 16-bit activations".
std::string scheme_name(const Scheme& scheme);

}  // namespace gearshift
