#include "pipeline/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "base/text.h"
#include "base/try.h"
#include "kernel/cpu/isa.h"
#include "kernel/plugin.h"
#include "layer/fused_layers.h"
#include "pipeline/environment.h"
#include "plan/measured.h"
#include "store/entry.h"

namespace gearshift {

namespace {

constexpr size_t longest_reason = 1000;

ErrorInfo usage(std::string subject, std::string found, std::string wanted, std::string hint = "") {
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = std::move(subject);
  error.found = std::move(found);
  error.wanted = std::move(wanted);
  error.hint = std::move(hint);
  return error;
}

bool any_matches(std::string_view glob, const std::vector<LayerSpec>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const LayerSpec& row) { return matches(glob, row); });
}

// What was said, and where: defaults were not said, and options of output say nothing about a plan.
std::vector<PolicyOrigin> origins_of(const Options& options) {
  std::vector<PolicyOrigin> origins;
  for (const auto& [name, value] : options) {
    const OptionSpec* spec = find_option(name);
    if (spec == nullptr || spec->use == OptionUse::front_end || name == "explain" || value.source == "default")
      continue;
    const std::string source = value.source == "file" && !value.written.empty() ? value.written : value.source;
    origins.push_back({name, join(value.values, ","), source});
  }
  return origins;
}

Result<std::vector<LayerSpec>> filtered(std::vector<LayerSpec> rows, const ModelLayers& model,
                                        const std::string& glob) {
  if (glob.empty()) return rows;
  const bool is_pattern = glob.find('*') != std::string::npos;
  const bool unknown_only = !any_matches(glob, rows) &&
                            std::any_of(model.unknown.begin(), model.unknown.end(),
                                        [&](const UnknownModule& module) { return glob_match(glob, module.name); });
  if (unknown_only) {
    ErrorInfo error = usage(fmt::format("--layers {}", printable(glob)), model.unknown.front().scheme,
                            "layers in a scheme that Gearshift loads");
    error.code = ErrorCode::unsupported_scheme;
    return error;
  }
  if (!is_pattern && !any_matches(glob, rows)) return unknown_layer("--layers", glob, rows);
  rows.erase(std::remove_if(rows.begin(), rows.end(), [&](const LayerSpec& row) { return !matches(glob, row); }),
             rows.end());
  return rows;
}

std::vector<LayerSpec> shards_of(std::vector<LayerSpec> rows, int64_t tp) {
  if (tp == 0) return rows;
  for (LayerSpec& row : rows) row = shard(row, tp);
  return rows;
}

}  // namespace

bool matches(std::string_view glob, const LayerSpec& layer) {
  const auto hit = [glob](std::string_view name) { return glob_match(glob, name); };
  return hit(layer.name) || std::any_of(layer.parts.begin(), layer.parts.end(), hit) ||
         std::any_of(layer.modules.begin(), layer.modules.end(),
                     [&](const Module& module) { return hit(module.name); });
}

ErrorInfo unknown_layer(std::string_view option, std::string_view word, const std::vector<LayerSpec>& rows) {
  std::vector<std::string_view> names;
  for (const LayerSpec& row : rows) {
    names.push_back(row.name);
    for (const Module& module : row.modules) {
      if (module.name != row.name) names.push_back(module.name);
    }
  }
  const std::vector<std::string> near = near_names(word, names);
  return usage(
      std::string(option), fmt::format("'{}'", printable(word)),
      fmt::format("the name of one of {} linear layers or their parts", rows.size()),
      near.empty() ? "`gearshift inspect` lists the names" : fmt::format("did you mean {}?", join(near, ", ")));
}

Result<Session> Session::open(const std::string& model, const Options& options) {
  return open_with(options, model, [&model] { return Checkpoint::open(model); });
}

Result<Session> Session::open(Checkpoint checkpoint, const Options& options) {
  return open_with(options, checkpoint.path(), [&checkpoint] { return Result<Checkpoint>(std::move(checkpoint)); });
}

Result<Session> Session::open_with(const Options& options, const std::string& model,
                                   const std::function<Result<Checkpoint>()>& checkpoint) {
  Session session;
  session.options_ = options;
  session.model_path_ = model;
  GEARSHIFT_TRY(session.settings_, read_settings(options));
  session.origins_ = origins_of(options);
  Settings& settings = session.settings_;
  if (!settings.lock.empty()) {
    GEARSHIFT_TRY(session.lock_, read_plan_record(settings.lock));
  }
  GEARSHIFT_TRY(const DeviceProfile host, host_cpu(settings.max_isa));
  set_max_isa(host.isa);  // kernels take the code path that the profile promises
  const std::vector<DeviceProfile> gpus = options.count("device") == 0 ? cuda_devices() : std::vector<DeviceProfile>{};
  if (gpus.empty()) {
    GEARSHIFT_TRY(session.device_, find_device(settings.device, host));
  } else {
    session.device_ = gpus.front();  // the best device present
  }
  GEARSHIFT_TRY(session.registry_, open_registry(settings.registry));
  if (!settings.plugins.empty() && settings.registry == "gearshift") {
    GEARSHIFT_TRY(session.registry_, with_plugins(session.registry_, settings.plugins));
  }
  GEARSHIFT_TRY(session.checkpoint_, checkpoint());
  std::vector<LayerSpec> rows;
  if (settings.fuse) {
    GEARSHIFT_TRY(FusedLayers fused, read_fused_layers(session.checkpoint_, !settings.layers.empty()));
    session.model_ = std::move(fused.model);
    session.linear_layers_ = fused.linear_layers;
    rows = std::move(fused.rows);
  } else {
    GEARSHIFT_TRY(session.model_, read_layers(session.checkpoint_, !settings.layers.empty()));
    session.linear_layers_ = static_cast<int64_t>(session.model_.layers.size());
    rows = session.model_.layers;
  }
  GEARSHIFT_TRY(session.routing_, read_routing(session.checkpoint_));
  GEARSHIFT_TRY(session.rows_, filtered(std::move(rows), session.model_, settings.layers));
  if (!settings.explain.empty() && !any_matches(settings.explain, session.rows_)) {
    return unknown_layer("--explain", settings.explain, session.rows_);
  }
  settings.policy.dtype = settings.dtype.value_or(session.model_.dtype);
  GEARSHIFT_CHECK(session.check_targets());
  settings.policy.threads = settings.threads > 0 ? settings.threads : std::max(1, host.cores);
  settings.policy.mode = settings.mode.empty() ? default_mode(session.device_.platform) : settings.mode;
  session.file_ = StoreFile(settings.store);
  session.environment_ = environment_of(session.device_);
  session.reload();
  session.note_foreign_rows();
  return session;
}

PlanRequest Session::request(const Registry& registry, int64_t tp) const {
  PlanRequest request;
  request.model = &model_;
  request.model_path = checkpoint_.path();
  request.routing = routing_;
  request.device = device_;
  request.policy = settings_.policy;
  request.policy.tp = tp;
  request.registry = &registry;
  request.store = &store;
  return request;
}

// What the options and the model say beside the decisions.
void Session::describe(Plan& plan) const {
  plan.origins = origins_;
  plan.linear_layers = linear_layers_;
  // The filter is no part of the policy: that it met nothing is for this room to say.
  if (!settings_.layers.empty() && rows_.empty()) plan.unused.push_back(settings_.layers);
}

Result<GroupPlan> Session::plan_group(const std::vector<DeviceProfile>& devices, const Store& asked_store) const {
  GEARSHIFT_CHECK(require_one_degree());
  if (lock_) return usage("--lock", printable(settings_.lock), "no earlier plan for a group of devices");
  PlanRequest asked = request(registry_, settings_.policy.tp);
  asked.layers = shards_of(rows_, asked.policy.tp);
  asked.store = &asked_store;
  GEARSHIFT_TRY(GroupPlan group, gearshift::plan_group(asked, devices));
  for (Plan& plan : group.plans) describe(plan);
  return group;
}

Result<Plan> Session::plan(const Registry& registry, const std::string& selection) const {
  PlanRequest asked = request(registry, settings_.policy.tp);
  asked.layers = shards_of(rows_, asked.policy.tp);
  if (!selection.empty()) asked.policy.selection = selection;
  asked.lock = lock_ ? &*lock_ : nullptr;
  GEARSHIFT_TRY(Plan plan, make_plan(std::move(asked)));
  describe(plan);
  plan.notes = notes_;
  plan.notes.insert(plan.notes.end(), file_.warnings().begin(), file_.warnings().end());
  return plan;
}

Result<void> Session::settle_column_order(size_t row) {
  bool& ordered = rows_[row].scheme.weight.act_order;
  if (ordered) {
    GEARSHIFT_TRY(ordered, is_out_of_order(checkpoint_, rows_[row]));
  }
  return {};
}

// The child process that launches kernels reads options: it must hear of it, too.
void Session::set_dtype(DType dtype) {
  settings_.policy.dtype = dtype;
  const char* word = dtype == DType::f32 ? "fp32" : dtype == DType::f16 ? "fp16" : "bf16";
  options_["dtype"] = {{word}, "call", ""};
}

Result<Plan> Session::plan_shards(int64_t tp) const {
  PlanRequest asked = request(registry_, tp);
  asked.layers = shards_of(rows_, tp);
  asked.keep_refused = true;
  return make_plan(std::move(asked));
}

// A store that does not apply at all is what nobody would notice.
void Session::note_foreign_rows() {
  if (!device_.present || !store.times.empty() || !store.proofs.empty() || !store.quarantines.empty()) return;
  const std::vector<StoreEntry> rows = file_.entries();
  if (rows.empty()) return;
  elsewhere_ = difference(rows.front().environment, environment_);
  notes_.push_back(fmt::format("store {}: none of {} rows apply here ({}); they are kept for their own device",
                               printable(file_.path()), rows.size(), elsewhere_));
}

StoreEntry Session::entry(EntryKind kind, const Kernel& kernel, const std::string& layer_class, int64_t m,
                          std::string_view tactic) const {
  StoreEntry entry;
  entry.kind = kind;
  entry.environment = environment_;
  entry.kernel = kernel.name;
  entry.kernel_version = kernel.version;
  entry.tactic = tactic;
  entry.layout = key_of(*kernel.layout);
  entry.layer_class = layer_class;
  entry.dtype = name(dtype());
  entry.m_min = entry.m_max = m;
  if (kind != EntryKind::quarantine) entry.threads = threads();
  if (kind == EntryKind::measurement) entry.mode = settings_.policy.mode;
  entry.taken = std::time(nullptr);
  return entry;
}

void Session::add_store_warnings(Plan& plan) const {
  for (const std::string& warning : file_.warnings()) {
    if (std::find(plan.notes.begin(), plan.notes.end(), warning) == plan.notes.end()) plan.notes.push_back(warning);
  }
}

bool Session::keep(std::vector<StoreEntry> rows) {
  if (rows.empty()) return true;
  const bool written = file_.write(std::move(rows));
  reload();
  return written;
}

void Session::quarantine(const Quarantine& quarantine, const Kernel& kernel, const std::string& evidence) {
  found_wrong.push_back(quarantine);
  StoreEntry row = entry(EntryKind::quarantine, kernel, quarantine.layer_class, quarantine.m_min, quarantine.tactic);
  row.m_max = quarantine.m_max;
  row.reason = printable(quarantine.reason, longest_reason);
  row.evidence = printable(evidence, longest_reason);
  keep({std::move(row)});
  // It must hold here even where it cannot be kept.
  const bool kept = std::any_of(store.quarantines.begin(), store.quarantines.end(), [&](const Quarantine& known) {
    return known.kernel == quarantine.kernel && known.tactic == quarantine.tactic &&
           known.layer_class == quarantine.layer_class && known.m_min == quarantine.m_min &&
           known.m_max == quarantine.m_max;
  });
  if (!kept) store.quarantines.push_back(quarantine);
}

bool Session::is_proven(const Kernel& kernel, const std::string& layer_class, int64_t m,
                        std::string_view tactic) const {
  return std::any_of(store.proofs.begin(), store.proofs.end(), [&](const ProvenBatch& row) {
    return row.m == m && row.kernel == kernel.name && row.kernel_version == kernel.version && row.tactic == tactic &&
           row.layout == key_of(*kernel.layout) && row.layer_class == layer_class && row.dtype == name(dtype()) &&
           row.threads == threads();
  });
}

std::string Session::why_unproven(const Kernel& kernel, const std::string& layer_class, std::string_view tactic) const {
  std::string why = elsewhere_.empty() ? "never proven here" : fmt::format("proven elsewhere ({})", elsewhere_);
  for (const ProvenBatch& row : store.proofs) {
    if (row.kernel != kernel.name || row.layer_class != layer_class || row.tactic != tactic) continue;
    if (row.kernel_version != kernel.version) {
      why = fmt::format("version {} of the kernel, proven was {}", kernel.version, row.kernel_version);
    } else if (row.layout != key_of(*kernel.layout)) {
      why = fmt::format("layout {}, proven was {}", key_of(*kernel.layout), row.layout);
    } else if (row.dtype != name(dtype())) {
      why = fmt::format("activations {}, proven was {}", name(dtype()), row.dtype);
    } else if (row.threads != threads()) {
      why = fmt::format("{} threads, proven were {}", threads(), row.threads);
    } else {
      return "another batch size";
    }
  }
  return why;
}

Result<Plan> Session::plan_row(const Registry& registry, size_t row, const std::string& selection) const {
  PlanRequest asked = request(registry, settings_.policy.tp);
  asked.layers = shards_of({rows_[row]}, asked.policy.tp);
  if (!selection.empty()) asked.policy.selection = selection;
  return make_plan(std::move(asked));
}

Result<void> Session::require_one_degree() const {
  if (!settings_.tp_auto) return {};
  return usage("--tp", "auto", "one degree", "`gearshift plan --tp auto` compares degrees");
}

Result<void> Session::require_whole_layers() const {
  GEARSHIFT_CHECK(require_one_degree());
  if (settings_.policy.tp <= 1) return {};
  return usage("--tp", std::to_string(settings_.policy.tp), "1: whole layers",
               "`gearshift plan --tp` plans what each rank gets, `gearshift verify --tp` proves it");
}

Result<void> Session::require_device() const {
  if (device_.present) return use_device(device_);
  return usage(fmt::format("--device {}", printable(settings_.device)),
               fmt::format("{}, which is not in this machine", device_.name), "a device that is here",
               "`gearshift plan` plans for absent devices; `gearshift devices` lists both");
}

Result<void> Session::require_weights() const {
  if (registry_.storage != nullptr) {
    return usage(fmt::format("--registry {}", printable(settings_.registry)),
                 "kernels of another engine, of which nothing runs here", "the registry gearshift",
                 "`gearshift plan` plans with it");
  }
  if (!checkpoint_.files().empty()) return {};
  return usage(printable(checkpoint_.path()), "a configuration without weights", "a checkpoint with safetensors files",
               "`gearshift plan` works from the configuration alone");
}

Result<void> Session::require_memory(const Plan& plan) const {
  if (device_.memory_bytes == 0) return {};
  for (const LayerPlan& row : plan.layers) {
    for (const auto& [m, scratch] : row.decision->workspace_bytes) {
      // Input and output, each also as it is proven: poisoned and guarded. In double: a product could overflow.
      const double elements = static_cast<double>(m) * static_cast<double>(row.layer.n + row.layer.k);
      const double needed = 2 * elements * (dtype() == DType::f32 ? 4 : 2) + static_cast<double>(scratch);
      if (needed <= static_cast<double>(device_.memory_bytes)) continue;
      ErrorInfo error;
      error.code = ErrorCode::runtime;
      error.subject = fmt::format("batch {} of layer {}", m, printable(row.layer.name));
      error.found = fmt::format("a need of {:.3g} GB for activations and scratch", needed / 1e9);
      error.wanted = fmt::format("at most the {} of this machine", format_bytes(device_.memory_bytes));
      error.hint = "give a smaller --batch";
      return error;
    }
  }
  return {};
}

Result<void> Session::settle_column_orders() {
  for (size_t row = 0; row < rows_.size(); ++row) GEARSHIFT_CHECK(settle_column_order(row));
  return {};
}

Result<void> Session::check_targets() const {
  std::vector<std::string> kept;
  for (const CheckpointFile& file : checkpoint_.files()) kept.push_back(file.path);
  if (!settings_.input.empty()) kept.push_back(settings_.input);
  const auto same = [](const std::string& a, const std::string& b) {
    std::error_code ignored;
    return std::filesystem::equivalent(a, b, ignored) ||
           std::filesystem::weakly_canonical(a, ignored) == std::filesystem::weakly_canonical(b, ignored);
  };
  for (const auto& [option, target] : {std::pair("--output", settings_.output), std::pair("--json", settings_.json),
                                       std::pair("--html", settings_.html)}) {
    if (target.empty()) continue;
    for (const std::string& file : kept) {
      if (same(target, file))
        return usage(fmt::format("{} {}", option, printable(target)), "a file that this run reads", "another file");
    }
    kept.push_back(target);
  }
  return {};
}

}  // namespace gearshift
