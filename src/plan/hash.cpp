#include "plan/hash.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace gearshift {
namespace {

// Text made of fields whose lengths are written before them, so that no two lists of fields give the same text.
class Canonical {
 public:
  Canonical& field(std::string_view value) {
    text_ += std::to_string(value.size());
    text_ += ':';
    text_ += value;
    return *this;
  }
  Canonical& field(int64_t value) { return field(std::string_view(std::to_string(value))); }
  Canonical& field(bool value) { return field(std::string_view(value ? "yes" : "no")); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add(Canonical& out, const BackendChoice& choice) {
  out.field(choice.global).field(static_cast<int64_t>(choice.families.size()));
  for (const auto& [family, backend] : choice.families) out.field(name(family)).field(backend);
}

void add(Canonical& out, const Policy& policy) {
  add(out, policy.linear);
  add(out, policy.moe);
  out.field(static_cast<int64_t>(policy.layers.size()));
  for (const auto& [glob, backend] : policy.layers) out.field(glob).field(backend);
  out.field(policy.strict).field(static_cast<int64_t>(policy.disable.size()));
  for (const std::string& item : policy.disable) out.field(item);
  out.field(policy.selection)
      .field(policy.mode)
      .field(name(policy.arithmetic))
      .field(static_cast<int64_t>(policy.batch.size()));
  for (int64_t m : policy.batch) out.field(m);
  out.field(policy.tp).field(policy.batch_invariant).field(static_cast<int64_t>(policy.memory_budget));
  out.field(policy.single_kernel).field(name(policy.dtype)).field(policy.force_kernel);
}

void add(Canonical& out, const Assumptions& assumptions) {
  out.field(static_cast<int64_t>(assumptions.packages.size()));
  for (const std::string& package : assumptions.packages) out.field(package);
  out.field(static_cast<int64_t>(assumptions.facts.size()));
  for (const auto& [fact, value] : assumptions.facts) out.field(fact).field(value).field(assumptions.is_given(fact));
}

void add(Canonical& out, const LayerPlan& row) {
  out.field(row.layer.name).field(row.decision->layer_class).field(static_cast<int64_t>(row.layer.parts.size()));
  for (const std::string& part : row.layer.parts) out.field(part);
  if (row.decision->rescue) out.field(name(row.decision->rescue->kind)).field(row.decision->rescue->k);
  out.field(static_cast<int64_t>(row.decision->by_batch().size()));
  for (const PlannedRange& range : row.decision->by_batch()) {
    const Kernel& kernel = *range.kernel;
    out.field(range.m_min).field(range.m_max).field(kernel.name).field(static_cast<int64_t>(kernel.version));
    out.field(kernel.layout->name).field(static_cast<int64_t>(kernel.layout->version)).field(range.activation);
    if (!range.tactic.empty()) out.field(range.tactic);
  }
}

}  // namespace

std::string decision_hash(const Plan& plan) {
  Canonical out;
  add(out, plan.policy);
  add(out.field(plan.registry), plan.assumptions);
  out.field(static_cast<int64_t>(plan.layers.size()));
  for (const LayerPlan& row : plan.layers) add(out, row);
  const XXH128_hash_t hash = XXH3_128bits(out.text().data(), out.text().size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace gearshift
