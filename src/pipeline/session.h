// An opened model and everything a plan of it depends on.
#pragma once

#include "gearshift/prepare.h"
#include "pipeline/options.h"
#include "pipeline/registries.h"

namespace gearshift {

class Session {
 public:
  // Opens the model, reads its layers, fuses and filters them, and finds the device. Reads headers only.
  static Result<Session> open(const std::string& model, const Options& options);
  static Result<Session> open(Checkpoint checkpoint, const Options& options);

  // The plan under what `store` knows now. Equal stores give equal plans.
  Result<Plan> plan() const { return plan(registry_); }
  Result<Plan> plan(const Registry& registry, const std::string& selection = "") const;
  // The same for the shards of `tp` ranks, whatever --tp says. Rows that nothing serves are no error here.
  Result<Plan> plan_shards(int64_t tp) const;
  // One plan for each of `devices`, with equal arithmetic in every row; `asked_store` is known of all of them.
  Result<GroupPlan> plan_group(const std::vector<DeviceProfile>& devices, const Store& asked_store) const;
  // Usage error for --tp auto, which is a question to plan.
  Result<void> require_one_degree() const;
  // The same where shards are asked for, which are planned and verified.
  Result<void> require_whole_layers() const;
  // The same for one row; `selection`: "static" or "measured", or "" as the policy says.
  Result<Plan> plan_row(const Registry& registry, size_t row, const std::string& selection) const;
  // The kernels to plan with: our own, and those of --plugin.
  const Registry& registry() const { return registry_; }
  // Usage error where the device planned for is not in this machine.
  Result<void> require_device() const;
  // What `run` and `verify` need besides: a registry whose kernels run here and weights (usage errors for another
  // engine's registry and for a config.json alone), and memory for activations and scratch of the largest batch
  // (runtime error).
  Result<void> require_weights() const;
  Result<void> require_memory(const Plan& plan) const;
  // Rows whose configuration announces an activation order, and whose stored index then puts every column where it
  // would be without one, lose it: a plan made afterwards may give them kernels that know none.
  Result<void> settle_column_orders();
  Result<void> settle_column_order(size_t row);

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Settings& settings() const { return settings_; }
  const std::vector<LayerSpec>& rows() const { return rows_; }
  const ModelLayers& model_layers() const { return model_; }
  const ExpertRouting& routing() const { return routing_; }
  int threads() const { return settings_.policy.threads; }
  DType dtype() const { return settings_.policy.dtype; }

  // What is known about this environment: rows of earlier processes, and those added since.
  Store store;
  // What was proven wrong since the session was opened.
  std::vector<Quarantine> found_wrong;

  // A row about `kernel` on a layer class at batch size m, with everything but its values.
  StoreEntry entry(EntryKind kind, const Kernel& kernel, const std::string& layer_class, int64_t m,
                   std::string_view tactic = {}) const;
  // Adds rows to `store` and to its file. False: others can't see them yet.
  bool keep(std::vector<StoreEntry> rows);
  void quarantine(const Quarantine& quarantine, const Kernel& kernel, const std::string& evidence);
  bool is_proven(const Kernel& kernel, const std::string& layer_class, int64_t m, std::string_view tactic = {}) const;
  // What keeps the proofs that are known from applying to this kernel.
  std::string why_unproven(const Kernel& kernel, const std::string& layer_class, std::string_view tactic) const;
  // Reads again what other processes may have added.
  void reload() { store = file_.read(environment_); }
  StoreFile& file() { return file_; }
  // Notes what went wrong with the file since `plan` was made.
  void add_store_warnings(Plan& plan) const;
  const RunEnvironment& environment() const { return environment_; }
  const DeviceProfile& device() const { return device_; }
  // What it was opened with.
  const Options& options() const { return options_; }
  const std::string& model() const { return model_path_; }
  // Batch sizes of the policy; an input file sets its own.
  void set_batch(std::vector<int64_t> batch) { settings_.policy.batch = std::move(batch); }
  // Of activations and outputs, instead of what options or checkpoint say.
  void set_dtype(DType dtype);

 private:
  void describe(Plan& plan) const;
  // Options are read before the checkpoint is opened.
  static Result<Session> open_with(const Options& options, const std::string& model,
                                   const std::function<Result<Checkpoint>()>& checkpoint);
  PlanRequest request(const Registry& registry, int64_t tp) const;
  // Usage error where a file to write is one that is read, or the other one that is written.
  Result<void> check_targets() const;
  void note_foreign_rows();

  Options options_;
  std::string model_path_;
  Checkpoint checkpoint_;
  std::vector<PolicyOrigin> origins_;
  std::optional<PlanRecord> lock_;
  Settings settings_;
  ModelLayers model_;
  int64_t linear_layers_ = 0;  // before fusing
  ExpertRouting routing_;
  std::vector<LayerSpec> rows_;
  DeviceProfile device_;
  Registry registry_;
  StoreFile file_;
  RunEnvironment environment_;
  std::vector<std::string> notes_;  // about the store
  std::string elsewhere_;           // what tells its rows from ours, where none applies
};

// A row matches by its own name, by the name of a part as shown, or by that of a module.
bool matches(std::string_view glob, const LayerSpec& layer);

// Error usage for a name that no row and no part has, with near names.
ErrorInfo unknown_layer(std::string_view option, std::string_view word, const std::vector<LayerSpec>& rows);

}  // namespace gearshift
