// layers x device x policy x store -> for every layer a kernel per batch range, and a verdict per candidate.
// A pure function: no weight byte, no GPU, no clock. Equal inputs give equal plans and equal hashes.
#pragma once

#include <map>
#include <memory>

#include "gearshift/device.h"
#include "gearshift/kernel.h"
#include "gearshift/layer.h"
#include "gearshift/routing.h"
#include "gearshift/store.h"

namespace gearshift {

enum class Arithmetic : uint8_t { exact, higher, lossy };
std::string_view name(Arithmetic arithmetic);

// Which backend is preferred: for all families (""/"auto": no filter) and for single ones.
struct BackendChoice {
  std::string global = "auto";
  std::map<Family, std::string> families;
};

struct Policy {
  BackendChoice linear, moe;                                    // moe: the same rules for expert layers
  std::vector<std::pair<std::string, std::string>> layers;      // glob -> backend, in order of the command line
  bool strict = false;
  std::vector<std::string> disable;                             // kernels, backends or families; '*' matches any characters
  std::string selection = "measured";                           // or "static"
  std::string mode = "eager";                                   // or "graph": as measured times must have been taken
  Arithmetic arithmetic = Arithmetic::higher;
  std::vector<int64_t> batch = {1, 8, 16, 64, 256, 1024, 4096};
  bool single_kernel = false;
  bool batch_invariant = false;                                 // a row's bits never depend on the others; one kernel for all
  uint64_t memory_budget = 0;                                   // bytes that second packed layouts may take in all
  int64_t tp = 0;                                               // the degree that the rows are shards of; 0: whole layers
  DType dtype = DType::bf16;                                    // activations and outputs
  std::string force_kernel;                                     // run --kernel K: only this one
  int threads = 1;                                              // for workspace sizes
  // What is assumed of the engine whose registry this is; see Assumptions.
  std::optional<std::vector<std::string>> with;                 // the whole set of packages; nullopt: the registry's default
  std::vector<std::string> without;                             // taken from that set
  std::vector<std::pair<std::string, std::string>> assume;      // fact, value
};

enum class VerdictKind : uint8_t { selected, eligible, rejected };
std::string_view name(VerdictKind kind);

struct Verdict {
  const Kernel* kernel = nullptr;
  VerdictKind kind = VerdictKind::rejected;
  Stage stage = Stage::rank;
  std::string field, found, wanted;  // empty where no single field decides (null in JSON)
  std::string reason;
};

struct PlannedRange {
  int64_t m_min = 1, m_max = 0;      // m_max 0: no bound
  const Kernel* kernel = nullptr;
  std::string_view source = "static";
  std::string_view activation;       // what enters the product: "bf16", "nvfp4", "fp8" ...
  std::string_view tactic = {};      // a measured one of the kernel's; "": the kernel chooses
};

// How a shard is served that tensor parallelism left with an awkward shape.
enum class Rescue : uint8_t {
  partial_group,      // the kernel takes a scale group that ends (or begins) inside
  padding,            // zeros around weights, scales and activations; outputs are cut
  shared_scale_tile,  // ranks that lie inside one scale block hold its scale each
  dequantised         // 16-bit weights, made once
};
std::string_view name(Rescue rescue);

struct PlannedRescue {
  Rescue kind = Rescue::padding;
  int64_t n = 0, k = 0;              // as the kernel sees the shard
  std::shared_ptr<const LayerSpec> served;  // the same in full; nullptr: the shard as it is
  uint64_t extra_bytes = 0;          // of weights and scales, on one rank
  std::string field, found, wanted;  // the number in the way
  std::string reason;
};

struct PlanFallback {
  std::string requested, reason;
};

// Shared by all layers of one class under one request.
struct Decision {
  std::string layer_class;
  std::vector<PlannedRange> ranges;           // by rows of one call; cover 1..infinity without gap or overlap
  // Of expert rows whose routing is known: the same as batches of tokens, by the rows that an expert can expect of them.
  std::vector<PlannedRange> token_ranges;
  const std::vector<PlannedRange>& by_batch() const { return token_ranges.empty() ? ranges : token_ranges; }
  std::vector<Verdict> candidates;            // every registered one, list order
  std::optional<PlanFallback> fallback;
  // the range that departs most from the checkpoint
  std::string_view weight_arithmetic, activation_arithmetic, accumulator;
  std::string_view differs;                   // "", "activation_upgraded", "weights_requantized"
  bool runnable = false;                      // this machine can execute the choice now
  std::optional<PlannedRescue> rescue;        // of a shard
  uint64_t scale_bytes = 0;                   // part of the layer's weight_bytes
  uint64_t second_layout_bytes = 0;           // packed copies beside the checkpoint's mapped bytes
  uint64_t prepare_peak_bytes = 0;            // most that is allocated while packing
  std::vector<std::pair<int64_t, int64_t>> workspace_bytes;  // by batch size of the policy
};

struct LayerPlan {
  LayerSpec layer;                            // the rank's own, before any padding
  std::shared_ptr<const Decision> decision;
};

// What a plan takes, all layers together. Workspaces belong to the caller and are used by one layer after the other.
struct PlanMemory {
  uint64_t weight_bytes = 0, scale_bytes = 0, second_layout_bytes = 0, prepare_peak_bytes = 0;
  std::vector<std::pair<int64_t, int64_t>> workspace_bytes;  // by batch size: the most that a layer needs
};

struct Warning {
  std::string code;       // backend_not_covered, backend_not_usable, emulation, activation_upgraded, quarantined, unknown_scheme
  std::string family;     // "" where none is concerned
  std::string requested;  // backend, "" where none
  int64_t layers = 0;     // rows concerned
  std::string message;
};

// An option that is no default, and where its value came from: "command line", "environment", "gearshift.toml:3".
struct PolicyOrigin {
  std::string option, value, source;
};

// Can this tensor-parallel degree be had without a rescue?
struct TpDegree {
  int64_t degree = 1;
  bool ok = false;
  int64_t layers = 0;                // rows that need a rescue, or have no kernel
  std::string field, found, wanted;  // the number in the way of the first of them
};

struct Plan {
  std::string model_path, architecture, quant_method;
  std::string registry = "gearshift";
  Assumptions assumptions;
  int64_t linear_layers = 0;   // before fusing
  DeviceProfile device;
  Policy policy;
  std::vector<std::string> unused;  // names and patterns of the policy that touched nothing
  std::vector<PolicyOrigin> origins;  // filled by who read the options; no part of the hash
  std::vector<LayerPlan> layers;
  ExpertRouting routing;       // of the expert rows
  std::vector<Warning> warnings;
  std::vector<std::string> skipped;
  std::vector<std::string> notes;   // about the store: what could not be used, and why
  std::vector<TpDegree> tp;    // what --tp auto found out
  std::string hash;            // of the decisions: layers, kernels, ranges, layouts, policy; not of times or paths
  std::shared_ptr<const void> kernels;  // keeps those of a registry that was read from data
};

struct PlanRecord;

// What the plan is made for.
struct PlanRequest {
  const ModelLayers* model = nullptr;
  std::vector<LayerSpec> layers;   // the rows: fused or not, filtered or not
  std::string model_path;
  ExpertRouting routing;           // of the expert rows
  DeviceProfile device;
  Policy policy;
  const Registry* registry = nullptr;
  const Store* store = nullptr;    // nullptr: empty
  const PlanRecord* lock = nullptr;  // choose exactly what this earlier plan chose; nullptr: choose
  std::optional<ActivationUse> activation;  // only kernels of this use for layers whose activations are quantized; nullopt: any
  bool keep_refused = false;       // where no_kernel or fallback_refused is the answer: the rows and their decisions alone
};
// Errors: usage (unknown backend, kernel, family, package or fact in the policy), fallback_refused (--strict, one detail line per
// layer group), no_kernel (a layer that nothing serves; details: every candidate's reason), self_check (nothing healthy
// is left because of quarantines). Under a lock no_kernel too where it can't be kept (details: every group of rows, why).
Result<Plan> make_plan(PlanRequest request);

PlanMemory memory_of(const Plan& plan);

// Ranks of one group on unlike devices: a plan for each, with equal arithmetic in every row.
struct GroupPlan {
  std::vector<Plan> plans;                // one per device
  std::vector<std::string> activations;   // by row: what enters the product on every device
};
// Rows whose activations are quantized run as the checkpoint asks where every device has a fast kernel for it; else, where
// the policy allows it, at 16 bits on all of them where that is faster; else as the checkpoint asks, emulated. request.device
// is ignored. Errors: those of make_plan, for the first device that has no kernel.
Result<GroupPlan> plan_group(const PlanRequest& request, const std::vector<DeviceProfile>& devices);

// The range that serves m (m >= 1).
const PlannedRange& range_for(const Decision& decision, int64_t m);

// ---- plans on paper -------------------------------------------------------------------------------------------------

// What a plan decided, without its reasons: from a Plan or from its document (gearshift.plan/1). Two of them are
// compared by `diff`; --lock pins one.
struct RecordedRange {
  int64_t m_min = 1, m_max = 0;  // m_max 0: no bound
  std::string kernel, backend, source, activation, layout, tactic;
  bool operator==(const RecordedRange&) const = default;
};
struct RecordedLayer {
  std::string name, family;
  int64_t experts = 0, n = 0, k = 0;
  std::string scheme;                 // weights and activations in the words of plan documents: "e2m1 g16 x e2m1"
  std::string arithmetic;             // of the range that departs most: "e2m1 x bf16, fp32 (activation_upgraded)"
  std::vector<RecordedRange> ranges;  // cover 1..infinity without gap or overlap
  bool operator==(const RecordedLayer&) const = default;
};
struct PlanRecord {
  std::string subject;  // the file, or the model's path
  std::string hash, model, device, arch;
  std::vector<RecordedLayer> layers;  // names are unique
};
PlanRecord record_of(const Plan& plan);
// The text of a plan document, untrusted. Error usage: no such document; names `subject` and the place in it.
Result<PlanRecord> parse_plan_record(std::string_view json, const std::string& subject);
Result<PlanRecord> read_plan_record(const std::string& path);

// One difference that rows of one role, shape and scheme have in common.
struct PlanDifference {
  std::vector<std::string> layers;  // names of the rows, plan order
  std::string field;                // "layer" (in one plan only), "shape", "scheme", "kernel", "layout", "arithmetic"
  std::string before, after;        // "" where the plan does not have the row
  int64_t n = 0, k = 0;
  std::string scheme;
};
struct PlanComparison {
  std::vector<PlanDifference> differences;
  int64_t same = 0;  // rows without any
};
PlanComparison compare_plans(const PlanRecord& before, const PlanRecord& after);

// ---- lint -----------------------------------------------------------------------------------------------------------

// A promise that a registry's lists or rules do not keep.
struct LintFinding {
  // portable_last, native_before_weight_only, opt_in_behind, reachable, device_gate, verified_devices_only,
  // one_fallback_rule, deny_list_everywhere, value_not_presence
  std::string rule;
  std::string platform, family, kind;  // "" where the rules around the lists are meant
  std::string kernel;                  // "" where no single one is meant
  std::string text;
};
// Asks every list about `devices` and sample layers, with every package that may be assumed and switches as they are by
// default.
std::vector<LintFinding> lint_registry(const Registry& registry, const std::vector<DeviceProfile>& devices);

}  // namespace gearshift
