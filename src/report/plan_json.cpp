#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "report/documents.h"
#include "report/json_parts.h"

namespace gearshift {

namespace {

void write_overrides(JsonWriter& json, std::string_view key, const BackendChoice& choice) {
  json.key(key).begin_object(JsonWriter::Line::single);
  for (const auto& [family, backend] : choice.families) json.member(name(family), backend);
  json.end();
}

// "FP16" and the like are how safetensors headers say it; options say fp16.
std::string dtype_word(DType dtype) { return dtype == DType::f16 ? "fp16" : dtype == DType::f32 ? "fp32" : "bf16"; }

void write_policy(JsonWriter& json, const Plan& plan) {
  const Policy& policy = plan.policy;
  json.key("policy").begin_object().member("registry", plan.registry);
  json.member("linear_backend", policy.linear.global.empty() ? "auto" : policy.linear.global.c_str());
  write_overrides(json, "overrides", policy.linear);
  json.member("moe_backend", policy.moe.global.empty() ? "auto" : policy.moe.global.c_str());
  write_overrides(json, "moe_overrides", policy.moe);
  json.key("layer_overrides").begin_array();
  for (const auto& [glob, backend] : policy.layers) {
    json.begin_object(JsonWriter::Line::single).member("layers", glob).member("backend", backend).end();
  }
  json.end();
  json.member("strict", policy.strict).member("selection", policy.selection);
  json.list("batch", policy.batch).list("unused", plan.unused).list("disable", policy.disable);
  json.member("arithmetic", name(policy.arithmetic)).member("single_kernel", policy.single_kernel);
  json.list("packages", plan.assumptions.packages);
  json.key("assume").begin_object(JsonWriter::Line::single);
  for (const std::string& fact : plan.assumptions.given) json.member(fact, plan.assumptions.fact(fact));
  json.end();
  json.member("batch_invariant", policy.batch_invariant).member("memory_budget", policy.memory_budget).key("tp");
  policy.tp > 0 ? json.value(policy.tp) : json.null();
  json.member("dtype", dtype_word(policy.dtype)).member_or_null("kernel", policy.force_kernel);
  json.key("sources").begin_object(JsonWriter::Line::single);
  for (const PolicyOrigin& origin : plan.origins) json.member(origin.option, origin.source);
  json.end();
  json.end();
}

void write_verdict(JsonWriter& json, const Verdict& verdict) {
  json.begin_object(JsonWriter::Line::single)
      .member("kernel", verdict.kernel->name)
      .member("backend", verdict.kernel->backend);
  json.member("verdict", name(verdict.kind)).member("stage", name(verdict.stage));
  json.member_or_null("field", verdict.field).member_or_null("found", verdict.found);
  json.member_or_null("wanted", verdict.wanted).member("reason", verdict.reason).end();
}

// What all layers of one decision have in common, as text: a plan has thousands of rows and few decisions.
struct DecisionText {
  std::string arithmetic, kernels, fallback, workspace, candidates;
};

constexpr size_t kRowDepth = 3;  // of a layer's members: document, layers, row

DecisionText decision_text(const Decision& decision) {
  DecisionText text;
  JsonWriter arithmetic(kRowDepth);
  arithmetic.begin_object(JsonWriter::Line::single).member("weight", decision.weight_arithmetic);
  arithmetic.member("activation", decision.activation_arithmetic).member("accumulator", decision.accumulator);
  arithmetic.member_or_null("differs", decision.differs).end();
  text.arithmetic = arithmetic.take();

  JsonWriter kernels(kRowDepth);
  kernels.begin_array();
  for (const PlannedRange& range : decision.by_batch()) {
    kernels.begin_object(JsonWriter::Line::single).member("m_min", range.m_min);
    write_bound(kernels, "m_max", range.m_max);
    kernels.member("kernel", range.kernel->name).member("backend", range.kernel->backend);
    kernels.member("source", range.source).member("activation", range.activation);
    kernels.member("layout", range.kernel->layout->name);
    if (!range.tactic.empty()) kernels.member("tactic", range.tactic);
    kernels.end();
  }
  kernels.end();
  text.kernels = kernels.take();

  JsonWriter fallback(kRowDepth);
  if (decision.fallback) {
    fallback.begin_object(JsonWriter::Line::single).member("requested", decision.fallback->requested);
    fallback.member("reason", decision.fallback->reason).end();
  } else {
    fallback.null();
  }
  text.fallback = fallback.take();

  JsonWriter workspace(kRowDepth);
  workspace.begin_object(JsonWriter::Line::single);
  for (const auto& [m, bytes] : decision.workspace_bytes) workspace.member(std::to_string(m), bytes);
  workspace.end();
  text.workspace = workspace.take();

  JsonWriter candidates(kRowDepth);
  candidates.begin_array();
  for (const Verdict& verdict : decision.candidates) write_verdict(candidates, verdict);
  candidates.end();
  text.candidates = candidates.take();
  return text;
}

// The shape before the split, and what makes the rank's own shape fit.
void write_shard(JsonWriter& json, const LayerPlan& row) {
  json.key("shard");
  if (!row.layer.shard) {
    json.null();
    return;
  }
  const Shard& shard = *row.layer.shard;
  const auto& rescue = row.decision->rescue;
  json.begin_object(JsonWriter::Line::single).member("tp", shard.tp).member("split", name(shard.split));
  json.member("n", shard.whole->n).member("k", shard.whole->k);
  json.member_or_null("rescue", rescue ? name(rescue->kind) : std::string_view());
  json.member("extra_bytes", rescue ? rescue->extra_bytes : 0);
  if (rescue) {
    json.member("rescued_n", rescue->n).member("rescued_k", rescue->k).member_or_null("field", rescue->field);
    json.member_or_null("found", rescue->found)
        .member_or_null("wanted", rescue->wanted)
        .member("reason", rescue->reason);
  }
  json.end();
}

void write_memory(JsonWriter& json, const Plan& plan) {
  const PlanMemory memory = memory_of(plan);
  json.key("memory").begin_object(JsonWriter::Line::single).member("weight_bytes", memory.weight_bytes);
  json.member("scale_bytes", memory.scale_bytes).member("second_layout_bytes", memory.second_layout_bytes);
  json.member("resident_bytes", memory.weight_bytes + memory.second_layout_bytes);
  json.member("prepare_peak_bytes", memory.prepare_peak_bytes).member("budget_bytes", plan.policy.memory_budget);
  json.key("workspace_bytes").begin_object(JsonWriter::Line::single);
  for (const auto& [m, bytes] : memory.workspace_bytes) json.member(std::to_string(m), bytes);
  json.end().end();
}

void write_degrees(JsonWriter& json, const std::vector<TpDegree>& degrees) {
  json.key("tp").begin_array();
  for (const TpDegree& degree : degrees) {
    json.begin_object(JsonWriter::Line::single).member("degree", degree.degree).member("ok", degree.ok);
    json.member("layers", degree.layers).member_or_null("field", degree.field);
    json.member_or_null("found", degree.found).member_or_null("wanted", degree.wanted).end();
  }
  json.end();
}

// How many rows an expert can expect of each batch.
void write_routing(JsonWriter& json, const LayerSpec& layer, const Plan& plan) {
  if (layer.kind != LayerKind::experts || !plan.routing.known()) return;
  json.member("experts_per_token", plan.routing.top_k).member("routed_experts", plan.routing.routed);
  json.key("tokens_per_expert").begin_object(JsonWriter::Line::single);
  for (const int64_t m : plan.policy.batch)
    json.member(std::to_string(m), rounded(tokens_per_expert(plan.routing, m), 4));
  json.end();
}

void write_layer(JsonWriter& json, const LayerPlan& row, const DecisionText& shared, const Plan& plan) {
  const LayerSpec& layer = row.layer;
  const Decision& decision = *row.decision;
  json.begin_object().member("name", layer.name).list("parts", layer.parts);
  json.member("kind", layer.kind == LayerKind::experts ? "experts" : "linear").member("experts", layer.experts);
  write_routing(json, layer, plan);
  json.member("family", name(layer.family)).member("n", layer.n).member("k", layer.k).member("bias", layer.bias);
  json.key("scheme");
  write_scheme(json, layer);
  json.key("arithmetic").raw(shared.arithmetic);
  json.key("kernels").raw(shared.kernels);
  json.key("fallback").raw(shared.fallback);
  json.member("runnable", decision.runnable);
  write_shard(json, row);
  json.key("memory").begin_object(JsonWriter::Line::single).member("weight_bytes", layer.weight_bytes);
  json.member("scale_bytes", decision.scale_bytes).member("second_layout_bytes", decision.second_layout_bytes);
  json.member("prepare_peak_bytes", decision.prepare_peak_bytes).key("workspace_bytes").raw(shared.workspace).end();
  json.key("candidates").raw(shared.candidates);
  json.end();
}

struct Tally {
  std::string_view name;
  int64_t layers = 0;
  uint64_t weight_bytes = 0;
};

Tally& tally(std::vector<Tally>& tallies, std::string_view name) {
  const auto found = std::find_if(tallies.begin(), tallies.end(), [&](const Tally& t) { return t.name == name; });
  if (found != tallies.end()) return *found;
  return tallies.emplace_back(Tally{name, 0, 0});
}

// A layer counts once for every kernel that serves one of its ranges.
void write_summary(JsonWriter& json, const Plan& plan) {
  std::vector<Tally> kernels, families;
  int64_t unquantized = 0;
  for (const LayerPlan& row : plan.layers) {
    std::vector<std::string_view> counted;
    for (const PlannedRange& range : row.decision->ranges) {
      if (std::find(counted.begin(), counted.end(), range.kernel->name) != counted.end()) continue;
      counted.push_back(range.kernel->name);
      Tally& kernel = tally(kernels, range.kernel->name);
      ++kernel.layers;
      kernel.weight_bytes += row.layer.weight_bytes;
    }
    ++tally(families, name(row.layer.family)).layers;
    unquantized += row.layer.scheme.quantized ? 0 : 1;
  }
  json.key("summary").begin_object().key("by_kernel").begin_array();
  for (const Tally& t : kernels) {
    json.begin_object(JsonWriter::Line::single).member("kernel", t.name).member("layers", t.layers);
    json.member("weight_bytes", t.weight_bytes).end();
  }
  json.end().key("by_family").begin_array();
  for (const Tally& t : families) {
    json.begin_object(JsonWriter::Line::single).member("family", t.name).member("layers", t.layers).end();
  }
  json.end().member("unquantized", unquantized).list("skipped", plan.skipped).end();
}

}  // namespace

std::string plan_json(const Plan& plan, size_t depth) {
  JsonWriter json(depth);
  json.begin_object().member("schema", "gearshift.plan/1").member("hash", plan.hash);
  json.key("model").begin_object(JsonWriter::Line::single).member("path", plan.model_path);
  json.member_or_null("architecture", plan.architecture).member_or_null("quant_method", plan.quant_method);
  json.member("linear_layers", plan.linear_layers).end();
  json.key("device");
  write_device(json, plan.device);
  write_policy(json, plan);
  std::unordered_map<const Decision*, DecisionText> texts;
  json.key("layers").begin_array();
  for (const LayerPlan& row : plan.layers) {
    const auto [text, fresh] = texts.try_emplace(row.decision.get());
    if (fresh) text->second = decision_text(*row.decision);
    write_layer(json, row, text->second, plan);
  }
  json.end().key("warnings");
  write_warnings(json, plan.warnings);
  write_summary(json, plan);
  write_memory(json, plan);
  if (!plan.tp.empty()) write_degrees(json, plan.tp);
  json.end();
  return json.take();
}

}  // namespace gearshift
