// layers x device x policy x store -> for every layer a kernel per batch range, and a verdict per candidate.
// A pure function: no weight byte, no GPU, no clock. Equal inputs give equal plans and equal hashes.
#pragma once

#include <map>
#include <memory>

#include "gearshift/device.h"
#include "gearshift/kernel.h"
#include "gearshift/layer.h"
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
};

struct PlanFallback {
  std::string requested, reason;
};

// Shared by all layers of one class under one request.
struct Decision {
  std::string layer_class;
  std::vector<PlannedRange> ranges;           // cover 1..infinity without gap or overlap
  std::vector<Verdict> candidates;            // every registered one, list order
  std::optional<PlanFallback> fallback;
  // the range that departs most from the checkpoint
  std::string_view weight_arithmetic, activation_arithmetic, accumulator;
  std::string_view differs;                   // "", "activation_upgraded", "weights_requantized"
  bool runnable = false;                      // this machine can execute the choice now
  uint64_t second_layout_bytes = 0, prepare_peak_bytes = 0;
  std::vector<std::pair<int64_t, int64_t>> workspace_bytes;  // by batch size of the policy
};

struct LayerPlan {
  LayerSpec layer;
  std::shared_ptr<const Decision> decision;
};

struct Warning {
  std::string code;       // backend_not_covered, backend_not_usable, emulation, activation_upgraded, quarantined, unknown_scheme
  std::string family;     // "" where none is concerned
  std::string requested;  // backend, "" where none
  int64_t layers = 0;     // rows concerned
  std::string message;
};

struct Plan {
  std::string model_path, architecture, quant_method;
  std::string registry = "gearshift";
  Assumptions assumptions;
  int64_t linear_layers = 0;   // before fusing
  DeviceProfile device;
  Policy policy;
  std::vector<std::string> unused;  // names and patterns of the policy that touched nothing
  std::vector<LayerPlan> layers;
  std::vector<Warning> warnings;
  std::vector<std::string> skipped;
  std::vector<std::string> notes;   // about the store: what could not be used, and why
  std::string hash;            // of the decisions: layers, kernels, ranges, layouts, policy; not of times or paths
  std::shared_ptr<const void> kernels;  // keeps those of a registry that was read from data
};

// What the plan is made for.
struct PlanRequest {
  const ModelLayers* model = nullptr;
  std::vector<LayerSpec> layers;   // the rows: fused or not, filtered or not
  std::string model_path;
  DeviceProfile device;
  Policy policy;
  const Registry* registry = nullptr;
  const Store* store = nullptr;    // nullptr: empty
};
// Errors: usage (unknown backend, kernel, family, package or fact in the policy), fallback_refused (--strict, one detail line per
// layer group), no_kernel (a layer that nothing serves; details: every candidate's reason), self_check (nothing healthy
// is left because of quarantines).
Result<Plan> make_plan(PlanRequest request);

// The range that serves m (m >= 1).
const PlannedRange& range_for(const Decision& decision, int64_t m);

}  // namespace gearshift
