// Strings the rooms together: options -> open, layers, plan, prepare, prove, re-plan after a quarantine, run.
// What the command, the C border and the Python package call, so that no front end repeats the order of work or the
// precedence of options (call > command line > environment > file > default).
#pragma once

#include <functional>
#include <map>

#include "gearshift/measure.h"
#include "gearshift/plan.h"
#include "gearshift/quantize.h"

namespace gearshift {

// Options as text, by long name without dashes ("linear-backend"), each with where it came from.
struct OptionValue {
  std::vector<std::string> values;  // one per occurrence; a flag has "1"
  std::string source;               // "command line", "environment", "default"
};
using Options = std::map<std::string, OptionValue>;

// Adds what the environment says (GEARSHIFT_LINEAR_BACKEND for linear-backend ...) where `given` is silent.
// `environment` is an argument so that options are read in one place and tests need no process state.
Options with_environment(Options given, const std::function<const char*(const char*)>& environment);

// Called with finished and total steps and what is being worked on; nullptr: no progress.
using Progress = std::function<void(size_t done, size_t total, std::string_view what)>;

// Reads headers only. Errors: those of Checkpoint::open, read_layers and make_plan; usage for options.
Result<Plan> plan_model(const std::string& model, const Options& options);

struct StackTime {
  int64_t m = 0;
  double total_us = 0;
  std::vector<std::pair<std::string, double>> share_by_family;  // 0..1
};
struct RunReport {
  Plan plan;                                // after any quarantine
  std::vector<Measurement> rows;            // layer x batch size
  std::vector<StackTime> stack;
  std::vector<Quarantine> quarantined;
  std::vector<std::string> not_run;         // rows planned and not executed, with the reason
  std::string output;                       // file written, ""
};
Result<RunReport> run_model(const std::string& model, const Options& options, const Progress& progress = nullptr);

struct VerifyReport {
  Plan plan;
  std::vector<Measurement> rows;            // (layer class, kernel, m)
  std::vector<Quarantine> quarantined;
};
Result<VerifyReport> verify_model(const std::string& model, const Options& options, const Progress& progress = nullptr);

struct InspectReport {
  std::string path, architecture, quant_method;
  std::vector<CheckpointFile> files;
  std::vector<TensorInfo> tensors;
  std::vector<LayerSpec> layers;            // unfused
  std::vector<UnknownModule> unknown;
  std::vector<std::string> skipped;
};
Result<InspectReport> inspect_model(const std::string& model);

struct KernelRow {
  const Kernel* kernel = nullptr;
  int64_t m_min = 1, m_max = 0;             // of its list line
  bool runnable = false;
  std::string reason;                       // why not, or why it stands where it stands
};
std::vector<KernelRow> list_kernels(const DeviceProfile& host);

struct LaunchTest {
  std::string kernel;
  bool ok = false;
  std::string note;
};
struct DoctorReport {
  DeviceProfile device;
  std::string driver;                                       // "" where there is none
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
  std::vector<std::pair<std::string, std::string>> build;      // version, compiler, flags, code targets
  std::string store;
  std::vector<LaunchTest> launch_tests;                     // every kernel that can run here, on a small layer
  Options options;
};
Result<DoctorReport> doctor(const Options& options);

Result<QuantizeReport> quantize_model(const std::string& model, const Options& options, const Progress& progress = nullptr);

}  // namespace gearshift
