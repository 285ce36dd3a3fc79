#include "plan/gates.h"

#include <algorithm>

#include "base/text.h"
#include "plan/arithmetic.h"
#include "store/quarantine.h"

namespace gearshift {
namespace {

std::optional<Refusal> refused_by_name(const Kernel& kernel, Family family, const Policy& policy) {
  for (const std::string& pattern : policy.disable) {
    if (!disables(pattern, kernel, family)) continue;
    return Refusal{Stage::policy, "disable", pattern, "", "left out by --disable " + pattern};
  }
  if (!policy.force_kernel.empty() && kernel.name != policy.force_kernel)
    return Refusal{Stage::policy, "kernel", std::string(kernel.name), policy.force_kernel,
                   "left out by --kernel " + policy.force_kernel};
  return std::nullopt;
}

std::optional<Refusal> refused_by_fact(const Kernel& kernel, const SelectionContext& context) {
  const std::string_view fact = context.registry.rules.disabling_fact;
  if (fact.empty()) return std::nullopt;
  const std::vector<std::string> names = split(context.assumptions.fact(fact), ',');
  if (std::find(names.begin(), names.end(), kernel.name) == names.end()) return std::nullopt;
  return Refusal{Stage::policy, std::string(fact), std::string(kernel.name), "", "is disabled by " + std::string(fact)};
}

std::optional<Refusal> refused_by_arithmetic(const Kernel& kernel, const LayerSpec& layer,
                                             const SelectionContext& context) {
  const Policy& policy = context.policy;
  if (context.activation && layer.scheme.activation && kernel.activation != *context.activation) {
    return Refusal{Stage::policy, "arithmetic", std::string(activation_word(kernel, layer, policy.dtype)), "",
                   "another device of the group multiplies other activations, and all of them run the same"};
  }
  if (policy.arithmetic != Arithmetic::exact || !upgrades_activations(kernel, layer)) return std::nullopt;
  const std::string found(activation_word(kernel, layer, policy.dtype));
  const std::string wanted(activation_word(layer, policy.dtype));
  return Refusal{Stage::policy, "arithmetic", found, wanted,
                 "multiplies " + found + " activations where the checkpoint asks for " + wanted +
                     ": --arithmetic higher allows it"};
}

// The contract's M range. Its limit on output elements bounds M too; the default of that limit is beyond any memory and
// counts as none, so that a range may stay open.
BatchSet batches_of_contract(const Contract& contract, int64_t n) {
  int64_t max = contract.m.max;
  if (contract.max_output_elements < Contract{}.max_output_elements) {
    const int64_t rows = contract.max_output_elements / std::max<int64_t>(n, 1);
    if (rows < 1) return {};
    max = max == 0 ? rows : std::min(max, rows);
  }
  const auto range = batch_range(contract.m.min, max);
  return range ? BatchSet(*range) : BatchSet{};
}

std::optional<Refusal> refused_by_batch(const Contract& contract, const LayerSpec& layer, const BatchSet& allowed) {
  if (contract.m.multiple > 1) {
    const std::string wanted = "a multiple of " + std::to_string(contract.m.multiple);
    return Refusal{Stage::layer, "m", "any batch size", wanted,
                   "serves only batch sizes that are " + wanted + ", and batch sizes come as they please"};
  }
  if (allowed.empty())
    return Refusal{Stage::layer, "m", "n = " + std::to_string(layer.n),
                   "at most " + std::to_string(contract.max_output_elements) + " output elements",
                   "no batch size is left: one row has " + std::to_string(layer.n) + " outputs"};
  return std::nullopt;
}

std::optional<Refusal> refused_by_quarantine(const GatedCandidate& candidate) {
  if (candidate.quarantines.empty() || !candidate.allowed.empty()) return std::nullopt;
  const Quarantine& row = *candidate.quarantines.front();
  return Refusal{Stage::self_check, "m", text(candidate.contract_allows), "",
                 "gave wrong numbers on this device for " + text(candidate.contract_allows) +
                     (row.reason.empty() ? "" : ": " + row.reason)};
}

// --single-kernel and --batch-invariant, for a candidate that passed everything else.
std::optional<Refusal> refused_as_single(const GatedCandidate& candidate, const Policy& policy) {
  if (candidate.allowed.everything()) return std::nullopt;
  const bool quarantined = candidate.contract_allows.everything();
  const std::string field = policy.batch_invariant ? "batch_invariant" : "single_kernel";
  const std::string option = policy.batch_invariant ? "--batch-invariant" : "--single-kernel";
  return Refusal{quarantined ? Stage::self_check : Stage::policy, quarantined ? "m" : field, text(candidate.allowed),
                 text(BatchRange{}),
                 "serves " + text(candidate.allowed) + ", and " + option + " wants one kernel for all batch sizes"};
}

// One activation scale for the whole of x, made at run time, ties every row to all others, whatever the kernel does.
std::optional<Refusal> refused_as_variant(const Kernel& kernel, const LayerSpec& layer,
                                          const SelectionContext& context) {
  // Another engine has a switch of its own for this, which its contracts and rules ask about.
  if (!context.policy.batch_invariant || !context.registry.rules.batch_invariant_fact.empty()) return std::nullopt;
  if (!kernel.contract.bits_same_for_any_m)
    return Refusal{Stage::policy, "batch_invariant", "no", "yes",
                   "does not promise the same bits for a row whatever stands beside it, which --batch-invariant wants"};
  if (kernel.activation == ActivationUse::as_checkpoint && scale_spans_rows(layer.scheme))
    return Refusal{
        Stage::policy, "batch_invariant", "one activation scale for all rows", "a scale of each row's own",
        "the checkpoint's activation scale is made from all rows together, which --batch-invariant rules out"};
  return std::nullopt;
}

// --strict without a check: a device that is here gets one before the kernel runs, an absent one has those of its
// store.
std::optional<Refusal> refused_as_unverified(const Kernel& kernel, const std::string& layer_class,
                                             const SelectionContext& context) {
  const DeviceProfile& device = context.device;
  const auto& proofs = context.store.proofs;
  const bool proven = std::any_of(proofs.begin(), proofs.end(), [&](const ProvenBatch& proof) {
    return proof.tactic.empty() && proof.kernel == kernel.name && proof.kernel_version == kernel.version &&
           proof.layer_class == layer_class;
  });
  if (proven) return std::nullopt;
  if (!context.policy.strict || device.present || kernel.platform == Platform::cpu || is_verified_on(kernel, device))
    return std::nullopt;
  const auto& verified = kernel.contract.verified;
  const std::string wanted = join(std::vector<std::string>(verified.begin(), verified.end()), ", ");
  return Refusal{Stage::self_check, "verified", device.arch, wanted,
                 "not verified on " + device.arch + ", and --strict takes no kernel that has not been checked there"};
}

}  // namespace

bool is_verified_on(const Kernel& kernel, const DeviceProfile& device) {
  const bool is_ours = kernel.layout != &engine_layout;
  const bool runs_on_host = kernel.platform == Platform::cpu && device.platform != Platform::cpu;
  const auto& verified = kernel.contract.verified;
  return !is_ours || runs_on_host || std::any_of(verified.begin(), verified.end(), [&](std::string_view known) {
    return known == name(kernel.platform) || glob_match(known, device.arch) || known == device.name;
  });
}

bool one_for_all(const Policy& policy) { return policy.single_kernel || policy.batch_invariant; }

bool disables(const std::string& pattern, const Kernel& kernel, Family family) {
  return glob_match(pattern, kernel.name) || glob_match(pattern, kernel.backend) || glob_match(pattern, name(family));
}

GatedCandidate pass_gates(const ListEntry& entry, const LayerCase& layer_case, const std::string& layer_class,
                          const SelectionContext& context, OpenGates open) {
  const Kernel& kernel = *entry.kernel;
  const LayerSpec& layer = layer_case.layer;
  const Policy& policy = context.policy;
  GatedCandidate candidate;
  candidate.entry = &entry;

  candidate.refusal = refused_by_name(kernel, layer.family, policy);
  if (!candidate.refusal && !open.disabled) candidate.refusal = refused_by_fact(kernel, context);
  candidate.left_out = candidate.refusal.has_value();
  if (!candidate.refusal) candidate.refusal = refused_by_arithmetic(kernel, layer, context);
  if (!candidate.refusal) candidate.refusal = refused_as_variant(kernel, layer, context);
  if (!candidate.refusal) candidate.refusal = refuses(kernel, layer_case, open.layer ? Stage::device : Stage::layer);
  if (!candidate.refusal) candidate.refusal = refused_as_unverified(kernel, layer_class, context);
  if (candidate.refusal) return candidate;

  candidate.contract_allows = batches_of_contract(kernel.contract, layer.n);
  candidate.refusal = refused_by_batch(kernel.contract, layer, candidate.contract_allows);
  if (candidate.refusal) return candidate;

  candidate.allowed = candidate.contract_allows;
  for (const Quarantine* row :
       quarantines_of(context.store, kernel.name, kernel.version, layer_class, name(policy.dtype))) {
    const BatchSet before = candidate.allowed;
    candidate.allowed.subtract(*batch_range(row->m_min, row->m_max));
    if (candidate.allowed != before) candidate.quarantines.push_back(row);
  }
  candidate.refusal = refused_by_quarantine(candidate);
  if (!candidate.refusal && one_for_all(policy)) candidate.refusal = refused_as_single(candidate, policy);
  if (candidate.refusal) candidate.allowed = {};
  return candidate;
}

}  // namespace gearshift
