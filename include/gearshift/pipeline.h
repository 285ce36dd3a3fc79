// Strings the rooms together: options -> open, layers, plan, prepare, prove, re-plan after a quarantine, run.
// What the command, the C border and the Python package call, so that no front end repeats the order of work or the
// precedence of options (call > command line > environment > file > default).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "gearshift/measure.h"
#include "gearshift/plan.h"
#include "gearshift/quantize.h"

namespace gearshift {

// ---- options --------------------------------------------------------------------------------------------------------

// Verbs of the command, as bits: which of them have an option.
enum Verb : uint32_t {
  kPlan = 1U << 0,
  kRun = 1U << 1,
  kVerify = 1U << 2,
  kTune = 1U << 3,
  kBench = 1U << 4,
  kQuantize = 1U << 5,
  kInspect = 1U << 6,
  kDiff = 1U << 7,
  kKernels = 1U << 8,
  kDevices = 1U << 9,
  kDoctor = 1U << 10,
  kStore = 1U << 11,
  kCompletion = 1U << 12
};

enum class OptionKind : uint8_t {
  flag,     // on or off
  value,    // one text
  list,     // comma-separated, may be repeated
  repeated  // one text an occurrence
};
enum class OptionUse : uint8_t {
  library,    // read_settings knows what it means
  front_end,  // concerns output only; the library checks its targets and reads nothing else
  later       // known, and not in this version
};
struct OptionSpec {
  std::string_view name;      // long, without dashes: "linear-backend"
  std::string_view letters;   // "-o", or ""
  std::string_view argument;  // "B[,FAMILY=B...]"; "" for a flag
  OptionKind kind;
  OptionUse use;
  uint32_t verbs;              // 0: no word of the command line, only a variable and a key of the file
  std::string_view otherwise;  // the default as text; "" has none to show
  std::string_view help;
};
// The one table: help, environment variables, keys of gearshift.toml, completion scripts and docs/options.md come from
// it. In the order of the help pages.
std::span<const OptionSpec> all_options();
const OptionSpec* find_option(std::string_view name);
// "GEARSHIFT_LINEAR_BACKEND" for linear-backend.
std::string variable_of(std::string_view option);

// One option as text, and where it came from.
struct OptionValue {
  std::vector<std::string> values;  // one per occurrence; a flag has "1"
  std::string source;               // "call", "command line", "environment", "file", "default"
  std::string written = "";  // as the user wrote it: "-o", "GEARSHIFT_BATCH", "gearshift.toml:3: batch"; "": --NAME
};
using Options = std::map<std::string, OptionValue>;  // by long name without dashes

// `environment` is an argument so that options are read in one place and tests need no process state.
using Environment = std::function<const char*(const char*)>;

// `strong`, and what `weak` says where it is silent. --fuse and --no-fuse count as one option.
Options over(Options strong, const Options& weak);
// Adds what the environment says (GEARSHIFT_LINEAR_BACKEND for linear-backend ...) where `given` is silent.
Options with_environment(Options given, const Environment& environment);
// ./gearshift.toml, else gearshift/gearshift.toml in $XDG_CONFIG_HOME (~/.config); "" where there is neither.
std::string find_config_file(const Environment& environment);
// Adds what a file says. Keys are the long names ('_' may stand for '-'), at the top level; what may be repeated or is
// comma-separated may be a list. Errors usage, with file and line: no TOML, an unknown key, a value of another kind.
Result<Options> with_config_file(Options given, const std::string& path);
// given (a call's over the command line's) over environment over file.
Result<Options> complete_options(Options given, const Environment& environment);
// What a verb hears of environment and file, which speak to all verbs: the options that it has. The doctor looks at
// all.
Options heard_by(Verb verb, Options options);
// Every option that has a default, with its value: those of `options` first, the defaults where it is silent.
Options effective_options(const Options& options);
// GEARSHIFT_ variables among `variables` that no option has, each with near names.
std::vector<std::string> unknown_variables(const std::vector<std::string>& variables);

// Called with finished and total steps and what is being worked on; nullptr: no progress. It may throw to stop the work:
// nothing half done is left behind, and what was measured so far is kept.
using Progress = std::function<void(size_t done, size_t total, std::string_view what)>;

// Reads headers only. Errors: those of Checkpoint::open, read_layers and make_plan; usage for options.
Result<Plan> plan_model(const std::string& model, const Options& options);
// The same for ranks on unlike devices, one plan for each of --device A,B. Measured times belong to one device and
// are not asked; what gave wrong numbers on one of them is left out on all.
Result<GroupPlan> plan_group_model(const std::string& model, const Options& options);

// ---- layers to call -------------------------------------------------------------------------------------------------

// One linear layer, or the experts of one, with packed weights and proven kernels: what run() of run.h takes. It keeps
// all that its kernels read; const use from many threads is safe as long as each call brings a workspace of its own.
struct ReadyLayer {
  ReadyLayer() = default;
  ReadyLayer(const ReadyLayer&) = delete;  // `prepared` points at `plan`
  ReadyLayer& operator=(const ReadyLayer&) = delete;

  Checkpoint checkpoint;
  Plan plan;  // of this layer alone, after any quarantine
  PreparedLayer prepared;
  int threads = 1;
  std::vector<Quarantine> quarantined;  // kernels that the plan had chosen, and that were wrong
};

// An opened model, its plan, and its layers on demand.
class Model {
 public:
  // Reads headers only. Errors: those of plan_model.
  static Result<Model> open(const std::string& path, const Options& options);
  // The same for a checkpoint in memory. Its kernels are launched without a child process, which could not open it.
  static Result<Model> open(const Checkpoint& checkpoint, const Options& options);
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const Plan& plan() const;
  // Prepares a row of the plan, or a module of a fused row, and proves its kernels at the edges of their ranges and the
  // batch sizes of the plan. What fails is quarantined, and the next kernel takes its place. `dtype`: of x and y;
  // nullopt: the plan's. Callable from many threads, which take turns. Errors: usage (no such layer, a device that is
  // not here), damaged_checkpoint, runtime (memory), and those of planning.
  Result<std::unique_ptr<const ReadyLayer>> load(const std::string& layer,
                                                 std::optional<DType> dtype = std::nullopt) const;

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct StackTime {
  int64_t m = 0;
  double total_us = 0;
  std::vector<std::pair<std::string, double>> share_by_family;  // 0..1
};
// How kernels were proven: remembered proofs are looked at briefly, others are made, each for a reason.
struct ProofCounts {
  size_t remembered = 0, made = 0;    // batch sizes of kernels on layer classes
  std::map<std::string, size_t> why;  // "never proven here", "version 2 of the kernel, proven was 1": how many
};
struct RunReport {
  Plan plan;                      // after any quarantine
  std::vector<Measurement> rows;  // layer x batch size
  std::vector<StackTime> stack;
  std::vector<Quarantine> quarantined;
  std::vector<std::string> not_run;  // rows planned and not executed, with the reason
  ProofCounts proofs;
  std::string output;                // file written, ""
};
Result<RunReport> run_model(const std::string& model, const Options& options, const Progress& progress = nullptr);

struct VerifyReport {
  Plan plan;
  std::vector<Measurement> rows;  // (layer class, kernel, m)
  std::vector<Quarantine> quarantined;
};
Result<VerifyReport> verify_model(const std::string& model, const Options& options, const Progress& progress = nullptr);

// One time that tune measured, or found in the store.
struct TunedRow {
  Measurement measurement;       // comparison: of the proof before the race
  std::string chosen, previous;  // kernels of the plan at this layer and batch size, after and before
  std::string chosen_tactic;     // "": as the kernel chooses
};
// Over all layers whose times are known, by batch size: the priority lists alone, the plan now, the best kernel each.
struct TunedBatch {
  int64_t m = 0;
  double static_us = 0, chosen_us = 0, best_us = 0;
};
struct TuneReport {
  Plan plan;                                 // with what was measured
  std::string static_hash;                   // of the plan that the lists alone give
  std::vector<TunedRow> rows;
  std::vector<TunedBatch> batch;
  std::optional<double> oracle_gap;          // time of the chosen kernels over the best measured ones
  size_t groups = 0, tunable = 0;            // layer groups, and those with a choice to make
  size_t measured = 0, reused = 0;           // races run here, and those whose rows were there already
  std::vector<std::string> not_measured;     // what, and why
  std::vector<Quarantine> quarantined;
  int rank = 0, ranks = 1;
};
// Measures the kernels that the plan can use, each layer class once, and keeps every result as soon as it is there: stopped
// at any moment it goes on from there. Errors: usage (a graph is being captured), those of planning and proof, runtime.
Result<TuneReport> tune_model(const std::string& model, const Options& options, const Progress& progress = nullptr);

// What `gearshift store ACTION [FILE]` does and found.
struct StoreReport {
  std::string action, path;
  std::vector<StoreEntry> rows;       // list
  StoreCheck check;                   // list, verify
  int64_t changed = 0;                // rows exported, imported, merged or removed
  std::vector<std::string> notes;
};
// Actions: list, verify, export FILE, import FILE, merge STORE, prune [KERNEL]. Errors usage, runtime.
Result<StoreReport> use_store(const std::vector<std::string>& words, const Options& options);

// One layer, or all layers of a model that share a class, at one batch size.
struct BenchRow {
  Measurement measurement;     // of one layer; layer is "" for a given shape
  std::string refused;         // why nothing ran; the measurement then has no number
  int64_t layers = 1;          // rows of the model that look like this one
  double floor_us = 0;         // the least time that the ceilings leave; 0 where nothing ran
  std::string floor_by;        // the ceiling that sets it
  int64_t copies = 0;          // of the weights, read in turn
  uint64_t rotated_bytes = 0;  // of all copies
};
struct BenchReport {
  Plan plan;  // of what could be planned
  int threads = 1;
  bool pinned = false;  // each thread on a core of its own
  std::vector<Ceiling> ceilings;
  std::vector<BenchRow> rows;
  std::vector<StackTime> stack;    // of a model, for the batch sizes at which every row was timed
  std::vector<std::string> notes;  // what makes these numbers worth less
};
// Times kernels on the shapes of --shape or of the layers of --model, with made-up weights, and beside them what this
// machine can do at most. A kernel that was asked for and does not serve a cell is refused there: no other one is timed
// in its place. Errors: usage, runtime (memory), fallback_refused, those of opening a model.
Result<BenchReport> bench(const Options& options, const Progress& progress = nullptr);

struct InspectReport {
  std::string path, architecture, quant_method;
  std::vector<CheckpointFile> files;
  std::vector<TensorInfo> tensors;
  std::vector<LayerSpec> layers;  // unfused
  std::vector<UnknownModule> unknown;
  std::vector<std::string> skipped;
};
Result<InspectReport> inspect_model(const std::string& model);

struct KernelRow {
  const Kernel* kernel = nullptr;
  int64_t m_min = 1, m_max = 0;  // of its list line
  bool runnable = false;
  std::string reason;  // why not, or why it stands where it stands
};
std::vector<KernelRow> list_kernels(const DeviceProfile& host);
// Those of the registry that --registry names, which the rows keep alive. Errors: usage.
struct KernelListing {
  Registry registry;
  std::vector<KernelRow> rows;
};
Result<KernelListing> list_kernels(const DeviceProfile& host, const Options& options);

struct LaunchTest {
  std::string kernel;
  bool ok = false;
  std::string note;
};
struct DoctorReport {
  DeviceProfile device;
  std::string driver;                                          // "" where there is none
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
  std::vector<std::pair<std::string, std::string>> build;      // version, compiler, flags, code targets
  std::vector<std::pair<std::string, std::string>> kernel_targets;  // kernel, the code that this build holds of it
  std::string store;
  std::vector<LaunchTest> launch_tests;  // every kernel that can run here, on a small layer, in a process of its own
  Options options;
};
Result<DoctorReport> doctor(const Options& options);

// The whole of the program gearshift_launch, in which the library launches kernels for the first time:
// MODEL LAYER KERNEL[/TACTIC] M[,M...] [OPTION=VALUE...]. Returns its exit code.
int launch_program(int argc, char** argv);

Result<QuantizeReport> quantize_model(const std::string& model, const Options& options,
                                      const Progress& progress = nullptr);

}  // namespace gearshift
