// What `bench` is asked to time.
#pragma once

#include "gearshift/pipeline.h"
#include "pipeline/options.h"

namespace gearshift {

// A layer to make up, and how many rows of the model look like it.
struct BenchTarget {
  LayerSpec layer;
  int64_t layers = 1;
};

struct BenchJob {
  Settings settings;  // with the policy as it holds for these layers
  DeviceProfile device;
  ModelLayers model;
  std::string model_path;  // "" for given shapes
  std::vector<BenchTarget> targets;
  std::vector<Scheme> schemes;  // of made-up layers

  int threads() const { return settings.policy.threads; }
};

// Reads the options, and the headers of --model. Errors: usage, those of Session::open.
Result<BenchJob> bench_job(const Options& options);

}  // namespace gearshift
