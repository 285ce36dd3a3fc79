// An opened model and everything a plan of it depends on.
#pragma once

#include "gearshift/checkpoint.h"
#include "pipeline/options.h"
#include "pipeline/registries.h"

namespace gearshift {

class Session {
 public:
  // Opens the model, reads its layers, fuses and filters them, and finds the device. Reads headers only.
  static Result<Session> open(const std::string& model, const Options& options);

  // The plan under what `store` knows now. Equal stores give equal plans.
  Result<Plan> plan() const { return plan(registry_); }
  Result<Plan> plan(const Registry& registry) const;
  // Usage error where the device planned for is not in this machine.
  Result<void> require_device() const;
  // What `run` and `verify` need besides: a registry whose kernels run here and weights (usage errors for another
  // engine's registry and for a config.json alone), and memory for activations and scratch of the largest batch
  // (runtime error).
  Result<void> require_weights() const;
  Result<void> require_memory(const Plan& plan) const;

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Settings& settings() const { return settings_; }
  const std::vector<LayerSpec>& rows() const { return rows_; }
  int threads() const { return settings_.policy.threads; }
  DType dtype() const { return settings_.policy.dtype; }

  // What was proven wrong since the session was opened.
  Store store;
  // Batch sizes of the policy; an input file sets its own.
  void set_batch(std::vector<int64_t> batch) { settings_.policy.batch = std::move(batch); }

 private:
  // Usage error where a file to write is one that is read, or the other one that is written.
  Result<void> check_targets() const;

  Checkpoint checkpoint_;
  Settings settings_;
  ModelLayers model_;
  std::vector<LayerSpec> rows_;
  DeviceProfile device_;
  Registry registry_;
};

// A row matches by its own name, by the name of a part as shown, or by that of a module.
bool matches(std::string_view glob, const LayerSpec& layer);

// Error usage for a name that no row and no part has, with near names.
ErrorInfo unknown_layer(std::string_view option, std::string_view word, const std::vector<LayerSpec>& rows);

}  // namespace gearshift
