// An opened model and its layers on demand: prepared, proven, and replaced where a kernel is wrong.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/try.h"
#include "gearshift/pipeline.h"
#include "measure/prove.h"
#include "pipeline/prover.h"
#include "pipeline/value_notes.h"
#include "plan/hash.h"

namespace gearshift {

// What stays at its place: provers and child processes point at the session.
struct OpenedModel {
  explicit OpenedModel(Session opened, bool from_file) : session(std::move(opened)), has_file(from_file) {}
  OpenedModel(const OpenedModel&) = delete;
  OpenedModel& operator=(const OpenedModel&) = delete;

  Session session;
  bool has_file;
  std::map<DType, Prover> provers;

  Prover& prover() {
    return provers.try_emplace(session.dtype(), session, has_file ? isolation_by_child(session) : nullptr)
        .first->second;
  }
};

namespace {

// Row `index` of a plan as a plan of its own.
Plan row_alone(const Plan& plan, size_t index) {
  Plan row;
  row.model_path = plan.model_path;
  row.architecture = plan.architecture;
  row.quant_method = plan.quant_method;
  row.registry = plan.registry;
  row.assumptions = plan.assumptions;
  row.linear_layers = static_cast<int64_t>(plan.layers[index].layer.modules.size());
  row.device = plan.device;
  row.policy = plan.policy;
  row.origins = plan.origins;
  row.layers = {plan.layers[index]};
  for (const Warning& warning : plan.warnings) {
    if (warning.family == name(row.layers.front().layer.family)) row.warnings.push_back(warning);
  }
  row.notes = plan.notes;
  row.kernels = plan.kernels;
  row.hash = decision_hash(row);
  return row;
}

// Prepares and proves one row.
class LayerLoader {
 public:
  // `plan`: of all rows, for the session's dtype; nullptr: none was made.
  LayerLoader(OpenedModel& model, const Plan* plan) : model_(model), session_(model.session), plan_(plan) {}

  Result<std::unique_ptr<const ReadyLayer>> load(size_t row) {
    GEARSHIFT_CHECK(session_.require_device());
    GEARSHIFT_CHECK(session_.require_weights());
    GEARSHIFT_CHECK(session_.require_whole_layers());
    GEARSHIFT_CHECK(session_.settle_column_order(row));
    const bool as_planned = plan_ != nullptr && session_.found_wrong.empty() &&
                            plan_->layers[row].layer.scheme == session_.rows()[row].scheme;
    auto ready = std::make_unique<ReadyLayer>();
    ready->checkpoint = session_.checkpoint();
    ready->threads = session_.threads();
    if (as_planned) {
      ready->plan = row_alone(*plan_, row);
    } else {
      GEARSHIFT_TRY(ready->plan, planned_anew(row));
    }
    GEARSHIFT_CHECK(session_.require_memory(ready->plan));
    for (;;) {
      // Before anything of a kernel runs in this process, its packing included.
      std::optional<Quarantine> wrong = launch_ranges(ready->plan.layers.front());
      if (!wrong) {
        GEARSHIFT_TRY(ready->prepared, prepare(ready->checkpoint, ready->plan.layers.front(), ready->threads));
        wrong = prove_ranges(ready->prepared);
      }
      if (!wrong) break;
      const Decision& decision = *ready->plan.layers.front().decision;
      GEARSHIFT_CHECK(impose(session_, *wrong, *range_for(decision, wrong->m_min).kernel));
      ready->quarantined.push_back(*wrong);
      ready->prepared = {};
      GEARSHIFT_TRY(ready->plan, planned_anew(row));
    }
    ValueNotes notes;
    notes.add(ready->prepared);
    notes.append_to(ready->plan);
    const std::vector<std::string>& launches = model_.prover().notes();
    ready->plan.notes.insert(ready->plan.notes.end(), launches.begin(), launches.end());
    return std::unique_ptr<const ReadyLayer>(std::move(ready));
  }

 private:
  Result<Plan> planned_anew(size_t row) const { return session_.plan_row(session_.registry(), row, ""); }

  std::vector<int64_t> sizes_of(const PlannedRange& range) const {
    return probe_sizes(range.m_min, range.m_max, session_.settings().policy.batch);
  }

  std::optional<Quarantine> launch_ranges(const LayerPlan& plan) {
    for (const PlannedRange& range : plan.decision->ranges) {
      if (const auto failure = model_.prover().launch_apart(*range.kernel, plan, sizes_of(range), range.tactic))
        return quarantine_of(plan, {range.m_min, failure->what}, session_.dtype());
    }
    return std::nullopt;
  }

  std::optional<Quarantine> prove_ranges(const PreparedLayer& prepared) {
    const LayerPlan& plan = *prepared.plan;
    Judge judge(prepared.weights.front(), session_.settings().seed, session_.threads());
    for (const PlannedRange& range : plan.decision->ranges) {
      if (const auto failure =
              model_.prover().prove_at(*range.kernel, prepared, 0, sizes_of(range), judge, range.tactic))
        return quarantine_of(plan, *failure, session_.dtype());
    }
    return std::nullopt;
  }

  OpenedModel& model_;
  Session& session_;
  const Plan* plan_;
};

std::optional<size_t> row_named(const Session& session, const std::string& layer) {
  const std::vector<LayerSpec>& rows = session.rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const LayerSpec& spec) { return spec.name == layer; });
  return row == rows.end() ? std::nullopt : std::optional(static_cast<size_t>(row - rows.begin()));
}

Options without_fusing(Options options) {
  options.erase("fuse");
  options["no-fuse"] = {{"1"}, "call", ""};
  return options;
}

}  // namespace

struct Model::State {
  std::unique_ptr<OpenedModel> rows;     // as planned
  std::unique_ptr<OpenedModel> modules;  // the same without fusing; opened when a part of a fused row is asked for
  Plan plan;
  std::mutex turn;

  Result<void> open_modules() {
    if (modules) return {};
    const Options options = without_fusing(rows->session.options());
    auto opened = rows->has_file ? Session::open(rows->session.model(), options)
                                 : Session::open(rows->session.checkpoint(), options);
    if (!opened.ok()) return opened.error();
    modules = std::make_unique<OpenedModel>(*std::move(opened), rows->has_file);
    return {};
  }
};

namespace {

template <class State>
Result<std::unique_ptr<State>> open_state(Result<Session> session, bool from_file) {
  if (!session.ok()) return session.error();
  auto state = std::make_unique<State>();
  state->rows = std::make_unique<OpenedModel>(*std::move(session), from_file);
  GEARSHIFT_TRY(state->plan, state->rows->session.plan(state->rows->session.registry()));
  return state;
}

}  // namespace

Result<Model> Model::open(const std::string& path, const Options& options) {
  GEARSHIFT_TRY(auto state, open_state<State>(Session::open(path, options), true));
  return Model(std::move(state));
}

Result<Model> Model::open(const Checkpoint& checkpoint, const Options& options) {
  GEARSHIFT_TRY(auto state, open_state<State>(Session::open(checkpoint, options), false));
  return Model(std::move(state));
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

const Plan& Model::plan() const { return state_->plan; }

Result<std::unique_ptr<const ReadyLayer>> Model::load(const std::string& layer, std::optional<DType> dtype) const {
  const std::lock_guard turn(state_->turn);
  const DType planned = state_->plan.policy.dtype;
  const DType wanted = dtype.value_or(planned);
  OpenedModel* model = state_->rows.get();
  std::optional<size_t> row = row_named(model->session, layer);
  if (!row) {
    const std::vector<LayerSpec>& rows = model->session.rows();
    const bool is_part = std::any_of(rows.begin(), rows.end(), [&](const LayerSpec& spec) {
      return std::any_of(spec.modules.begin(), spec.modules.end(),
                         [&](const Module& module) { return module.name == layer; });
    });
    if (!is_part) return unknown_layer("layer", layer, rows);
    GEARSHIFT_CHECK(state_->open_modules());
    model = state_->modules.get();
    row = row_named(model->session, layer);
    if (!row) return unknown_layer("layer", layer, model->session.rows());
  }
  model->session.set_dtype(wanted);
  const bool has_plan = model == state_->rows.get() && wanted == planned;
  return LayerLoader(*model, has_plan ? &state_->plan : nullptr).load(*row);
}

}  // namespace gearshift
