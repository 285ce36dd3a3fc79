#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "base/try.h"
#include "plan/assumed.h"
#include "plan/budget.h"
#include "plan/hash.h"
#include "plan/policy_names.h"
#include "plan/refusals.h"
#include "plan/registry_rules.h"
#include "plan/rescue.h"

namespace gearshift {

std::string_view name(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::exact:
      return "exact";
    case Arithmetic::higher:
      return "higher";
    case Arithmetic::lossy:
      return "lossy";
  }
  return "";
}

std::string_view name(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::selected:
      return "selected";
    case VerdictKind::eligible:
      return "eligible";
    case VerdictKind::rejected:
      return "rejected";
  }
  return "";
}

const PlannedRange& range_for(const Decision& decision, int64_t m) {
  // Ranges ascend without a gap, so the last one that begins at or before m serves it.
  auto range = std::upper_bound(decision.ranges.begin(), decision.ranges.end(), m,
                                [](int64_t size, const PlannedRange& r) { return size < r.m_min; });
  return range == decision.ranges.begin() ? *range : *std::prev(range);
}

namespace {

// What tells one locked row from another when decisions are shared.
std::string lock_key(const RecordedLayer* locked) {
  if (locked == nullptr) return "";
  std::string key = locked->family + " " + std::to_string(locked->n) + " " + std::to_string(locked->k) + " " +
                    std::to_string(locked->experts);
  for (const RecordedRange& range : locked->ranges)
    for (const std::string& word : {std::to_string(range.m_min), range.kernel, range.backend, range.source,
                                    range.activation, range.layout, range.tactic})
      key += '\n' + word;
  return key;
}

// Ranges of rows of one expert -> batches of tokens.
std::vector<PlannedRange> in_tokens(std::vector<PlannedRange> ranges, const ExpertRouting& routing) {
  int64_t next = 1;
  for (PlannedRange& range : ranges) {
    range.m_min = next;
    if (range.m_max != 0) range.m_max = batch_of_rows(routing, range.m_max);
    next = range.m_max + 1;
  }
  return ranges;
}

// The rows of the locked plan, by name. Documents speak of batches of tokens, decisions of rows.
class Lock {
 public:
  Lock(const PlanRecord* record, const ExpertRouting& routing) {
    if (record == nullptr) return;
    subject_ = record->subject;
    layers_ = record->layers;
    for (RecordedLayer& layer : layers_) {
      for (size_t i = 0; i < layer.ranges.size() && layer.experts > 0 && routing.known(); ++i) {
        RecordedRange& range = layer.ranges[i];
        if (range.m_max != 0) range.m_max = rows_within(routing, range.m_max);
        if (i > 0) range.m_min = layer.ranges[i - 1].m_max + 1;
      }
      rows_.emplace(layer.name, &layer);
    }
    given_ = true;
  }
  bool given() const { return given_; }
  const std::string& subject() const { return subject_; }
  // nullptr where no plan is locked, or it does not have the row.
  const RecordedLayer* row(const std::string& name) const {
    const auto found = rows_.find(name);
    return found == rows_.end() ? nullptr : found->second;
  }

 private:
  bool given_ = false;
  std::string subject_;
  std::vector<RecordedLayer> layers_;
  std::unordered_map<std::string_view, const RecordedLayer*> rows_;
};

// A shard's rescue depends on what it is a part of, too.
std::string key_of(const LayerSpec& layer) {
  std::string key = layer_class(layer);
  if (layer.shard) {
    const LayerSpec& whole = *layer.shard->whole;
    key +=
        " of " + std::to_string(whole.n) + "x" + std::to_string(whole.k) + " " + std::string(name(layer.shard->split));
  }
  return key;
}

// Selections per (rule, route, layer class, locked row): a model of thousands of rows has tens of classes.
class Selections {
 public:
  Selections(const std::vector<RequestRule>& rules, const SelectionContext& context, const Lock& lock,
             const ExpertRouting& routing)
      : rules_(rules), context_(context), lock_(lock), routing_(routing) {}

  std::shared_ptr<const Selection> of(const LayerSpec& layer, size_t rule, const ListRoute* route,
                                      Layouts layouts = Layouts::one) {
    const RecordedLayer* locked = lock_.row(layer.name);
    std::shared_ptr<const Selection>& selection = cache_[{rule, route, layouts, key_of(layer), lock_key(locked)}];
    if (!selection) {
      Selection made = select_rescued(layer, rules_[rule], route, context_, layouts, locked);
      if (lock_.given() && locked == nullptr) made.not_kept = {"the locked plan does not have it"};
      // Another engine's lists speak of tokens themselves.
      const bool ours = !context_.registry.rules.expert_lists;
      if (ours && layer.kind == LayerKind::experts && routing_.known())
        made.decision.token_ranges = in_tokens(made.decision.ranges, routing_);
      selection = std::make_shared<const Selection>(std::move(made));
    }
    return selection;
  }

 private:
  const std::vector<RequestRule>& rules_;
  const SelectionContext& context_;
  const Lock& lock_;
  const ExpertRouting& routing_;
  std::map<std::tuple<size_t, const ListRoute*, Layouts, std::string, std::string>, std::shared_ptr<const Selection>>
      cache_;
};

// Names and patterns of the policy that touched nothing, in the order rules, then --disable; each once.
std::vector<std::string> unused_of(const std::vector<RequestRule>& rules, const std::set<size_t>& used_rules,
                                   const std::vector<SelectedRow>& rows, const Policy& policy) {
  std::vector<std::string> unused;
  const auto add = [&](const std::string& item) {
    if (std::find(unused.begin(), unused.end(), item) == unused.end()) unused.push_back(item);
  };
  for (size_t i = 0; i < rules.size(); ++i) {
    const bool says_something = rules[i].scope != RequestRule::Scope::global || rules[i].asks();
    if (says_something && used_rules.count(i) == 0) add(rules[i].label);
  }

  std::set<std::pair<const Kernel*, Family>> candidates;
  std::set<const Selection*> seen;
  for (const SelectedRow& row : rows)
    if (seen.insert(row.selection).second)
      for (const Verdict& verdict : row.selection->decision.candidates)
        candidates.insert({verdict.kernel, row.layer->family});
  for (const std::string& pattern : policy.disable)
    if (std::none_of(candidates.begin(), candidates.end(),
                     [&](const auto& candidate) { return disables(pattern, *candidate.first, candidate.second); }))
      add(pattern);
  return unused;
}

// Gives rows their second layouts as far as the budget goes.
void spend_budget(const SelectionContext& context, const std::vector<RequestRule>& rules, Selections& selections,
                  std::vector<LayerPlan>& layers, std::vector<SelectedRow>& rows) {
  std::vector<std::shared_ptr<const Selection>> richer(rows.size());
  std::vector<LayoutOffer> offers;
  for (size_t i = 0; i < rows.size(); ++i) {
    const LayerSpec& layer = layers[i].layer;
    richer[i] = selections.of(layer, request_for(rules, layer), route_of(layer, context), Layouts::any);
    const Decision &from = *layers[i].decision, &to = richer[i]->decision;
    if (to.second_layout_bytes <= from.second_layout_bytes) continue;
    const size_t moved = moved_batch_sizes(from, to, context.policy.batch);
    if (moved > 0) offers.push_back({i, to.second_layout_bytes - from.second_layout_bytes, moved});
  }
  for (size_t i : rows_paid_for(std::move(offers), context.policy.memory_budget)) {
    layers[i].decision = {richer[i], &richer[i]->decision};
    rows[i].selection = richer[i].get();
  }
}

Result<void> within_budget(const std::vector<LayerPlan>& layers, uint64_t budget, const std::string& lock) {
  uint64_t needed = 0;
  for (const LayerPlan& row : layers)
    if (__builtin_add_overflow(needed, second_copy_bytes(row.layer, *row.decision), &needed))
      needed = std::numeric_limits<uint64_t>::max();
  if (needed <= budget) return {};
  ErrorInfo error;
  error.code = ErrorCode::no_kernel;
  error.subject = "--lock " + printable(lock);
  error.found = "second packed copies of " + std::to_string(needed) + " bytes";
  error.wanted = "at most --memory-budget " + std::to_string(budget);
  error.hint = "give a larger --memory-budget";
  return error;
}

}  // namespace

PlanMemory memory_of(const Plan& plan) {
  PlanMemory memory;
  for (int64_t m : plan.policy.batch) memory.workspace_bytes.emplace_back(m, 0);
  for (const LayerPlan& row : plan.layers) {
    const Decision& decision = *row.decision;
    memory.weight_bytes += row.layer.weight_bytes;
    memory.scale_bytes += decision.scale_bytes;
    memory.second_layout_bytes += decision.second_layout_bytes;
    memory.prepare_peak_bytes += decision.prepare_peak_bytes;
    for (const auto& [m, bytes] : decision.workspace_bytes)
      for (auto& [batch, most] : memory.workspace_bytes)
        if (batch == m) most = std::max(most, bytes);
  }
  return memory;
}

Result<Plan> make_plan(PlanRequest request) {
  static const Store empty_store;
  const Registry& registry = request.registry ? *request.registry : builtin_registry();
  GEARSHIFT_TRY(Policy policy, checked_policy(std::move(request.policy), registry));
  GEARSHIFT_TRY(Assumed assumed, assumed_by(policy, registry, request.device));
  if (request.model) {
    assumed.assumptions.quant_method = request.model->quant_method;
    assumed.assumptions.model_type = request.model->model_type;
  }
  const SelectionContext context{
      request.device,    policy, request.store ? *request.store : empty_store, registry, assumed.assumptions,
      request.activation};
  const std::vector<RequestRule> rules = request_rules(policy);

  const Lock lock(request.lock, request.routing);
  Selections selections(rules, context, lock, request.routing);
  std::vector<SelectedRow> rows;
  std::set<size_t> used_rules;
  Plan plan;
  plan.layers.reserve(request.layers.size());
  for (LayerSpec& layer : request.layers) {
    const ListRoute* route = route_of(layer, context);
    if (route != nullptr && route->family) layer.family = *route->family;
    const size_t rule = request_for(rules, layer);
    const std::shared_ptr<const Selection> selection = selections.of(layer, rule, route);
    if (selection->requested || !rules[rule].asks()) used_rules.insert(rule);
    plan.layers.push_back({std::move(layer), {selection, &selection->decision}});
    rows.push_back({&plan.layers.back().layer, selection.get()});
  }
  if (std::optional<ErrorInfo> refusal = refusal_of(rows, context, lock.subject())) {
    if (request.keep_refused) return plan;
    return *std::move(refusal);
  }
  // A locked plan has said what each layer gets; all that is left to ask is whether the budget pays for it.
  if (lock.given()) {
    GEARSHIFT_CHECK(within_budget(plan.layers, policy.memory_budget, lock.subject()));
  } else if (policy.memory_budget > 0) {
    spend_budget(context, rules, selections, plan.layers, rows);
  }

  plan.model_path = std::move(request.model_path);
  static const std::vector<UnknownModule> none;
  plan.warnings = warnings_of(rows, request.model ? request.model->unknown : none, context);
  plan.unused = unused_of(rules, used_rules, rows, policy);
  plan.unused.insert(plan.unused.end(), assumed.unused.begin(), assumed.unused.end());
  if (request.model) {
    plan.architecture = request.model->architecture;
    plan.quant_method = request.model->quant_method;
    plan.linear_layers = static_cast<int64_t>(request.model->layers.size());
    plan.skipped = request.model->skipped;
  }
  plan.registry = registry.name;
  plan.routing = request.routing;
  plan.kernels = registry.storage;
  plan.assumptions = std::move(assumed.assumptions);
  plan.device = std::move(request.device);
  plan.policy = std::move(policy);
  plan.hash = decision_hash(plan);
  return plan;
}

}  // namespace gearshift
