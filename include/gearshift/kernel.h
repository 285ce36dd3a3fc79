// Kernels as data: what each one accepts (contract), in which packed layout, and the ordered lists they stand in.
//
// A kernel sees one layer and one device. Generic code checks contracts, explains them and draws test shapes from them;
// `run` repeats no check that the contract has made. Kernels, layouts and registries live as long as the program.
#pragma once

#include <map>
#include <memory>

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
  // Of a shard that begins inside a scale tile of the whole layer: how far inside, in rows and columns.
  int64_t tile_row = 0, tile_col = 0;
  int64_t tile_cols = 0;                 // scales along K in the table; 0: as many as K needs
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
  Platform platform = Platform::cpu;  // whose memory the packed bytes are for; packing itself happens on the host
};
// The checkpoint's mapped bytes as they are: no copy, any range may use it. bytes() is 0.
extern const Layout checkpoint_layout;
// What another engine packs, and Gearshift does not: the layout of kernels that are only planned with. bytes() is 0.
extern const Layout engine_layout;

// ---- circumstances --------------------------------------------------------------------------------------------------

// Why a candidate may not serve a layer is decided stage by stage, in this order.
enum class Stage : uint8_t { policy, build, device, layer, self_check, rank };
std::string_view name(Stage stage);

// What is assumed of an engine whose kernels are planned with: never asked of this machine.
struct Assumptions {
  std::vector<std::string> packages;                    // ascending: "flashinfer", "flashinfer.cute_dsl" (a part of it)
  std::map<std::string, std::string, std::less<>> facts;  // switches and facts of its build, defaults included
  std::vector<std::string> given;                       // names of the facts that somebody stated, ascending
  std::string quant_method, model_type;                 // of the checkpoint

  bool has_package(std::string_view name) const;
  bool is_given(std::string_view fact) const;
  std::string_view fact(std::string_view name) const;  // "" for one that is not known
};

// A layer and everything else that decides about its kernels.
struct LayerCase {
  const LayerSpec& layer;
  const DeviceProfile& device;
  DType dtype = DType::bf16;  // x and y
  const Assumptions& assumptions;
  std::string_view backend = "auto";  // the requested one
};

// Device capabilities, major * 10 + minor: 90..90, 100..109 ("10x"), 75.. (max 0: no bound).
struct CapabilityRange {
  int min = 0, max = 0;
};
// False for a device without capability (0).
bool lies_in(const std::vector<CapabilityRange>& ranges, int capability);

// A question about one fact.
struct FactTest {
  enum class Kind : uint8_t { is, is_not, at_least /* numbers and versions */, given, not_given };
  std::string_view fact;
  Kind kind = Kind::is;
  std::string_view value;        // of the first three
  Stage stage = Stage::policy;   // build: a fact of the engine's build; policy: a switch
};
bool holds(const FactTest& test, const Assumptions& assumptions);

// Holds where every list that is not empty has what it asks for.
struct Condition {
  std::vector<Platform> platforms;
  std::vector<LayerKind> kinds;
  std::vector<Family> families;
  std::vector<CapabilityRange> capabilities;  // a device without capability lies in none
  std::vector<std::string_view> archs;        // '*' matches any characters
  std::vector<DType> dtypes;
  std::vector<Format> weight_formats;
  std::vector<Grouping::Kind> groupings;
  std::vector<Format> activation_formats;
  std::vector<Granularity> activation_granularities;
  std::optional<bool> activation_dynamic;
  std::vector<std::string_view> quant_methods, model_types;  // of the checkpoint
  std::vector<std::string_view> backends, other_backends;    // requested: one of these; none of those
  std::vector<FactTest> facts;
};
bool holds(const Condition& condition, const LayerCase& layer_case);

// ---- contracts ------------------------------------------------------------------------------------------------------

struct Bounds {
  int64_t min = 1;
  int64_t max = 0;       // 0: no limit
  int64_t multiple = 1;
};

// An operation that a kernel needs besides its own, such as the quantizer of its activations: of each role one at least must
// have code for the device.
struct HelperOp {
  std::string_view role, name;
  std::vector<std::string_view> targets;
};

// What may end where a scale group does not. Full K is the layer's, local K that of the part a rank holds.
enum class GroupFit : uint8_t {
  anywhere,
  full_k,                 // full K is whole groups
  local_k,                // local K is whole groups (one group a row: local K is one)
  local_k_of_narrow_groups  // the same, where a group is narrower than full K
};
std::string_view name(GroupFit fit);

// Empty lists mean "no restriction". Every field is checked by refuses(), stage by stage and within a stage in the order
// of declaration, but m and the element limits.
struct ConditionalContract;
struct Contract {
  // stages policy and build
  std::vector<std::string_view> packages;      // all of them
  std::vector<FactTest> facts;                 // all of them; each says its stage
  // stage build: the code that this build holds. "sm_90": that major revision from 9.0 up; "sm_90a": exactly 9.0; "sm_100f":
  // the family of 10.0; "compute_90": anything from 9.0 up, compiled by the driver; "gfx942": exactly that; "none" alone: a build without
  // code for this platform. Empty: nothing to ask (processors, kernels that are only planned with)
  std::vector<std::string_view> targets;
  std::vector<HelperOp> helpers;
  // stage device
  Isa isa = Isa::portable;                     // CPU kernels: the least instruction set
  std::vector<CapabilityRange> capabilities;   // not asked where the device has none
  std::vector<std::string_view> archs;         // other platforms: device codes; '*' matches any characters
  std::vector<std::string_view> libraries;     // opened at run time: "cublaslt"
  // stage layer
  std::vector<Format> weight_formats;
  std::vector<std::string_view> weight_types;  // the words of weight_type()
  std::vector<Storage> storages;
  std::vector<Grouping::Kind> groupings;
  std::vector<int64_t> groups;                 // columns per scale
  int64_t group_multiple = 1;                  // columns per scale are a multiple of it
  bool full_row_groups = false;                // a group as wide as full K will do whatever `groups` says
  Bounds group_rows;                           // rows per scale of blocks
  std::vector<DType> weight_dtypes;            // of float weights
  std::vector<DType> scale_dtypes;
  std::vector<Format> activation_formats;      // what the *checkpoint* asks for; see Kernel::activation
  bool activations_optional = false;           // beside those formats: a checkpoint that quantizes no activations
  std::vector<Granularity> activation_granularities;
  std::vector<int64_t> activation_groups;      // columns per scale of token groups
  std::optional<bool> activation_dynamic;      // scales made at run time, or stored
  std::vector<DType> dtypes;                   // x and y
  std::vector<std::string_view> other_model_types;  // any but these
  Bounds n, k, m;
  bool whole_words = false;                    // N is whole 32-bit words of codes
  GroupFit group_fit = GroupFit::anywhere;
  int64_t max_weight_elements = int64_t{1} << 40;
  int64_t max_output_elements = int64_t{1} << 40;
  bool zero_points = true, act_order = true, bias = true, experts = true, pre_scale = true, partial_groups = true;
  bool asymmetric_activations = true;
  bool both_per_tensor = true;                 // weights and activations with one scale each
  std::vector<ConditionalContract> where;      // more fields, for some circumstances only
  bool shard_offset = false;                   // reads PartWeights::tile_row and tile_col: shards that begin inside a scale tile
  // facts, not gates
  bool bits_same_for_any_m = false;            // a row's bits do not depend on the other rows
  bool capture_safe = false;                   // may be recorded in a CUDA graph
  std::vector<std::string_view> verified;      // devices it has run on; empty: not verified
};
// Fields that count where a condition holds: "from capability 100 on, CUDA 12.8".
struct ConditionalContract {
  Condition when;
  Contract contract;
};

// How codes are meant, in the words of serving engines: "uint4b8" (unsigned, offset by 8), "uint4" (with zero points),
// "int4" (two's complement, beside quantized activations), "e4m3".
std::string weight_type(const Scheme& scheme);

// ---- kernels --------------------------------------------------------------------------------------------------------

// Which activations enter the product.
enum class ActivationUse : uint8_t {
  as_checkpoint,  // quantized by the checkpoint's recipe (16-bit where it has none)
  float16         // as they come (bf16, fp16, fp32), also where the checkpoint quantizes them
};

// One call: y = x * W^T + bias. All pointers belong to the caller. x and y never overlap. x, y, packed and workspace lie in
// the memory of the kernel's platform; `weights` always on the host.
struct RunArgs {
  const LayerWeights* weights = nullptr;   // layout `checkpoint`; scalars and bias for the others
  const uint8_t* packed = nullptr;         // the kernel's layout; nullptr for `checkpoint`
  ConstMatrix x;                           // [M,K]
  Matrix y;                                // [M,N]; every element is written
  std::span<uint8_t> workspace;            // at least workspace_bytes(...), 64-byte aligned, contents undefined
  int threads = 1;
  void* stream = nullptr;                  // devices: what the call is queued on; nullptr: the default stream
  std::string_view tactic;                 // a drop-in variant by name; "": the kernel chooses
};

// Why a kernel may not serve a layer.
struct Refusal {
  Stage stage = Stage::layer;
  std::string field, found, wanted, reason;
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
  // Error bound per element: |y - ref| <= (bound_c * sqrt(K) * bound_u + bound_product) * sum|x||w| + u_out * |ref|.
  double bound_c = 4;
  double bound_u = 0x1p-24;
  double bound_product = 0;                // added to bound_c * sqrt(K) * bound_u: operands rounded before they are multiplied
  int64_t (*workspace_bytes)(const LayerSpec& layer, int64_t m, int threads) = nullptr;
  // Allocates nothing, takes no lock, writes no log line. Any M that the contract allows, 0 included.
  void (*run)(const RunArgs& args) = nullptr;
  std::string_view formula;                // one line: what it computes
  std::vector<std::string_view> notes;     // what no field says, for kernels that are only planned with
  std::string_view source;                 // where their contract comes from
  std::vector<std::string_view> tactics;   // names that RunArgs::tactic takes
  // What no contract field can say; nullptr: nothing. May throw: that is a no for this kernel alone.
  std::optional<Refusal> (*probe)(const LayerSpec& layer, const DeviceProfile& device, DType dtype) = nullptr;
};

// True when code for `target` runs on a device of `arch`.
bool target_covers(std::string_view target, std::string_view arch);
// Checks every contract field but M, up to a stage, then the probe; nullopt: accepted. Never throws.
std::optional<Refusal> refuses(const Kernel& kernel, const LayerCase& layer_case, Stage last = Stage::layer);
// The same where nothing has to be assumed.
std::optional<Refusal> refuses(const Kernel& kernel, const LayerSpec& layer, const DeviceProfile& device, DType dtype);

// ---- lists ----------------------------------------------------------------------------------------------------------

// One line of a priority list. Position is a claim; `why` says what it rests on.
struct ListEntry {
  const Kernel* kernel = nullptr;
  int64_t m_min = 1, m_max = 0;            // where `auto` prefers it; m_max 0: no bound. Not a limit: that is the contract's
  std::string_view why;
  bool on_request = false;                 // never the choice of `auto`
};
struct KernelList {
  Platform platform = Platform::cpu;
  Family family = Family::bf16;
  std::vector<ListEntry> entries;          // in priority order
  LayerKind kind = LayerKind::linear;      // see RegistryRules::expert_lists
  Condition when = {};
};

// ---- rules of a registry --------------------------------------------------------------------------------------------

// What becomes of a request that nothing serves.
enum class Unserved : uint8_t { falls_back, is_refused };
struct RequestRules {
  Unserved not_covered = Unserved::falls_back;  // the backend has no kernel in the list
  Unserved not_usable = Unserved::falls_back;   // it has, and each is ruled out
  std::vector<Condition> not_heard;             // requests that count as `auto`
};
// Layers that go to another list than that of their family, or that no line of it serves.
struct ListRoute {
  Condition when;                         // `backends` here are those of the global request
  std::optional<Family> family;
  std::string_view refuses;               // why nothing serves them; "": the list decides
};
// Layers that kernels see with activations of another granularity than the checkpoint's.
struct SeenAs {
  Condition when;
  std::string_view if_usable, unless_usable;  // a kernel that the device admits, or does not; "" for no question
  Granularity activation_granularity = Granularity::token;
};
// A kernel that is taken before the list is walked. Refused all the same where it does not stand in that list, or where
// the device does not admit it.
struct Force {
  Condition when;
  std::string_view kernel;
  bool if_usable = false;                 // the rule holds only where the device admits the kernel
  bool past_disabled = false;             // RegistryRules::disabling_fact does not touch it
  bool past_layer = false;                // nor does what its contract says of the layer
  std::string_view why;
};
// Lines that leave their place in the list, in the order of the rules.
struct Move {
  enum class To : uint8_t { front, back, out };
  Condition when;
  std::vector<std::string_view> kernels;
  To to = To::front;
  std::string_view why;
};
// What an engine's selection does besides walking lists.
struct RegistryRules {
  bool host_stands_in = true;             // a platform without lists is served by the host's references
  bool expert_lists = false;              // expert layers have lists of their own
  bool emulation_is_expected = false;     // slow kernels warn only where a faster one was ruled out
  bool rescues_shards = true;             // padding and 16-bit weights for shards that no kernel takes as they are
  bool folds_backend_names = false;       // upper case and '-' are taken as lower case and '_'
  RequestRules linear, experts;
  std::string_view disabling_fact;        // kernels left out by exact name, separated by commas
  std::string_view batch_invariant_fact;  // the switch that --batch-invariant stands for
  std::vector<ListRoute> routes;              // the first that holds
  std::vector<SeenAs> seen_as;            // the first that holds
  std::vector<Force> forces;              // the first that holds
  std::vector<Move> moves;                // all that hold
};

// A switch or a fact of a build that contracts and rules ask about.
struct Fact {
  enum class Kind : uint8_t { flag /* 0 or 1 */, number, version, text };
  std::string_view name;
  Kind kind = Kind::flag;
  Stage stage = Stage::policy;
  std::string_view value;                 // default
  std::vector<std::string_view> set_on;   // devices, by name ('*' matches any characters), where a flag is 1 by default
  std::string_view about;
};
// Packages that an engine's own installation brings on a platform.
struct DefaultInstall {
  Platform platform = Platform::cpu;
  std::vector<std::string_view> packages;
};

struct Registry {
  std::string_view name = "gearshift";
  std::vector<KernelList> lists;
  RegistryRules rules = {};
  std::vector<std::string_view> packages = {};  // every one that may be assumed, parts included ("flashinfer.cute_dsl")
  std::vector<DefaultInstall> default_install = {};
  std::vector<Fact> facts = {};
  std::string_view source = "";            // where its contents come from
  std::shared_ptr<const void> storage = nullptr;  // texts and kernels of a registry that was read from data

  // The list of a layer's platform, family and kind whose condition holds; a platform for which nothing is written yet
  // gets the host's references, where the rules say so.
  const KernelList* find(const LayerCase& layer_case) const;
  const KernelList* find(Platform platform, Family family) const;
  const Fact* find_fact(std::string_view fact_name) const;
  // Any line's kernel of that name, on the platform if there is one.
  const Kernel* find_kernel(std::string_view kernel_name, Platform platform) const;
};
const Registry& builtin_registry();
// What vLLM has and how it chooses; nothing of it runs here.
const Registry& vllm_registry();
// A registry as data (docs/registry.md); `subject` names the file in errors. Error usage: says the kernel and the field.
Result<Registry> read_registry(std::string_view text, const std::string& subject);
// Backend names a user may write, whether or not a kernel here has them.
std::span<const std::string_view> known_backends();

}  // namespace gearshift
