#include "pipeline/prover.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "measure/prove.h"

namespace gearshift {

Quarantine quarantine_of(const LayerPlan& plan, const ProofFailure& failure, DType dtype) {
  const PlannedRange& range = range_for(*plan.decision, failure.m);
  Quarantine quarantine;
  quarantine.kernel = range.kernel->name;
  quarantine.kernel_version = range.kernel->version;
  quarantine.layer_class = plan.decision->layer_class;
  quarantine.dtype = name(dtype);
  quarantine.m_min = range.m_min;
  quarantine.m_max = range.m_max;
  quarantine.reason = fmt::format("{} (layer {}, m = {})", failure.what, plan.layer.name, failure.m);
  quarantine.tactic = range.tactic;
  return quarantine;
}

Result<void> impose(Session& session, const Quarantine& wrong, const Kernel& kernel) {
  for (const Quarantine& known : session.found_wrong) {
    if (known.kernel != wrong.kernel || known.tactic != wrong.tactic || known.layer_class != wrong.layer_class ||
        known.dtype != wrong.dtype || known.m_min != wrong.m_min)
      continue;
    ErrorInfo error;
    error.code = ErrorCode::self_check;
    error.subject = fmt::format("kernel {}", wrong.kernel);
    error.found = wrong.reason;
    error.wanted = "a healthy kernel in its place";
    error.hint = "it stayed in the plan although it is quarantined; please report this";
    return error;
  }
  session.quarantine(wrong, kernel, fmt::format("seed {}", session.settings().seed));
  return {};
}

std::optional<ProofFailure> Prover::prove_at(const Kernel& kernel, const PreparedLayer& layer, int64_t expert,
                                             const std::vector<int64_t>& sizes, Judge& judge, std::string_view tactic) {
  const std::string& layer_class = layer.plan->decision->layer_class;
  const auto key = [&](int64_t m) { return Key{layer_class, &kernel, tactic, m}; };
  std::vector<int64_t> open;
  for (const int64_t m : sizes) {
    if (proven_.count(key(m)) == 0) open.push_back(m);
  }
  if (open.empty()) return std::nullopt;
  const auto known = [&](int64_t m) { return session_.is_proven(kernel, layer_class, m, tactic); };
  for (const int64_t m : open) {
    ++(known(m) ? counts_.remembered : counts_.made);
    if (!known(m)) ++counts_.why[session_.why_unproven(kernel, layer_class, tactic)];
  }
  const bool all_known = std::all_of(open.begin(), open.end(), known);
  if (auto failure = launch_apart(kernel, *layer.plan, open, tactic)) return failure;
  for (const int64_t m : open) {
    // What was proven before is looked at again where it is cheapest.
    if (known(m) && m != (all_known ? open.front() : 0)) continue;
    const Proof proof =
        prove(kernel, layer, m, session_.dtype(), session_.settings().seed, session_.threads(), expert, judge, tactic);
    if (!proof.comparison.ok) return ProofFailure{m, proof.comparison.failure};
    comparisons_[key(m)] = proof.comparison;
    if (!known(m)) add(kernel, layer_class, m, proof.comparison, tactic);
  }
  for (const int64_t m : open) proven_.insert(key(m));
  flush();
  return std::nullopt;
}

std::optional<ProofFailure> Prover::launch_apart(const Kernel& kernel, const LayerPlan& plan,
                                                 const std::vector<int64_t>& sizes, std::string_view tactic) {
  // The reference has judged in this process already.
  if (!isolation_ || kernel.backend == "reference") return std::nullopt;
  const std::string& layer_class = plan.decision->layer_class;
  if (const auto fatal = fatal_.find({layer_class, &kernel, std::string(tactic)}); fatal != fatal_.end())
    return fatal->second;
  std::vector<int64_t> fresh;
  for (const int64_t m : sizes) {
    if (m > 0 && !session_.is_proven(kernel, layer_class, m, tactic) &&
        launched_.insert({layer_class, &kernel, std::string(tactic), m}).second)
      fresh.push_back(m);
  }
  if (fresh.empty()) return std::nullopt;
  const ChildOutcome outcome =
      isolation_({plan.layer.name, std::string(kernel.name), std::string(tactic), fresh, plan.layer.n * plan.layer.k});
  if (outcome.failure.empty()) return std::nullopt;
  if (outcome.possible)
    return fatal_[{layer_class, &kernel, std::string(tactic)}] = ProofFailure{outcome.m, outcome.failure};
  const std::string note = fmt::format("kernels are launched without isolation: {}", outcome.failure);
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  return std::nullopt;
}

void Prover::launch_together(const Kernel& kernel, const LayerPlan& plan, const std::vector<int64_t>& sizes,
                             const std::vector<std::string>& tactics) {
  if (!isolation_ || kernel.backend == "reference") return;
  const std::string& layer_class = plan.decision->layer_class;
  const auto known = [&](const std::string& tactic, int64_t m) {
    return m <= 0 || session_.is_proven(kernel, layer_class, m, tactic) ||
           launched_.count({layer_class, &kernel, tactic, m}) != 0;
  };
  std::vector<std::string> fresh;
  std::set<int64_t> open;
  for (const std::string& tactic : tactics) {
    if (fatal_.count({layer_class, &kernel, tactic}) != 0) continue;
    bool any = false;
    for (const int64_t m : sizes) {
      if (known(tactic, m)) continue;
      open.insert(m);
      any = true;
    }
    if (any) fresh.push_back(tactic);
  }
  if (fresh.size() < 2) return;
  const ChildOutcome outcome = isolation_({plan.layer.name,
                                           std::string(kernel.name),
                                           join(fresh, ","),
                                           {open.begin(), open.end()},
                                           plan.layer.n * plan.layer.k});
  if (!outcome.possible || !outcome.failure.empty()) return;
  for (const std::string& tactic : fresh) {
    for (const int64_t m : open) launched_.insert({layer_class, &kernel, tactic, m});
  }
}

void Prover::add(const Kernel& kernel, const std::string& layer_class, int64_t m, const Comparison& comparison,
                 std::string_view tactic) {
  StoreEntry row = session_.entry(EntryKind::proof, kernel, layer_class, m, tactic);
  row.worst_row = comparison.worst_row;
  row.tolerance = comparison.tolerance;
  row.evidence = fmt::format("seed {}, worst column {:.3g}", session_.settings().seed, comparison.worst_column);
  rows_.push_back(std::move(row));
}

void Prover::flush() {
  session_.keep(std::move(rows_));
  rows_.clear();
}

}  // namespace gearshift
