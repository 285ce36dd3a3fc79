// What the text of each option means. The one place where options are read.
#pragma once

#include "gearshift/pipeline.h"

namespace gearshift {

// An expert block of `bench`: each expert has a gate and an up of N x K and a down of K x N.
struct MoeShape {
  int64_t experts = 0, top_k = 0, n = 0, k = 0;
};

// Options with their meaning. What the checkpoint or the machine decides stays open until they are known.
struct Settings {
  Policy policy;               // batch, backends, arithmetic ...; dtype and threads as below
  std::optional<DType> dtype;  // nullopt: the checkpoint's
  int threads = 0;             // 0: the cores this process may use
  std::string device = "cpu";
  std::string registry = "gearshift";  // "vllm", or a file
  std::string max_isa;                 // "": what the CPU has
  bool fuse = true;
  bool tp_auto = false;  // try tensor-parallel degrees
  bool batch_given = false;
  std::string layers;         // glob; "": all
  std::string explain;        // row or part name; "": none
  std::string lock;           // file of an earlier plan; "": none
  std::string input, output;  // files of `run`
  std::string json;           // the file of --json, "" where it goes to standard output or is not asked for
  std::string html;           // the file of --html
  uint64_t seed = 0;
  std::string store = "off";
  std::string mode;                  // "graph" or "eager"; "": as the device is used
  std::vector<std::string> plugins;  // files
  bool isolation = true;
  double launch_limit_s = 10;                       // of one launch in a child process
  double time_budget_s = 0;                         // 0: none
  int64_t memory_limit = 0;                         // bytes; 0: none (`bench`: half of what the machine has)
  std::vector<std::pair<int64_t, int64_t>> shapes;  // N, K of `bench`
  std::vector<MoeShape> moe_shapes;                 // of `bench`
  std::vector<Family> families;                     // of `bench`
  std::string model;                                // of `bench`; "": made-up shapes
  std::vector<QuantizeRule> rules;
  std::string container = "compressed-tensors", calibration, out;
};

// Errors usage: an option that nobody knows, one that this version does not have, a value that makes no sense. Each
// names the option as the user wrote it, what was found and what was wanted.
Result<Settings> read_settings(const Options& options);

}  // namespace gearshift
