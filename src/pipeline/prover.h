// Proof of kernels on layer classes, remembered: what an earlier process proved is checked briefly, at one batch size;
// what was never launched here is launched in a child process first.
#pragma once

#include <map>
#include <set>

#include "measure/judge.h"
#include "pipeline/isolation.h"

namespace gearshift {

struct ProofFailure {
  int64_t m = 0;
  std::string what;
};

// What a failure means for the range of the plan that serves its batch size.
Quarantine quarantine_of(const LayerPlan& plan, const ProofFailure& failure, DType dtype);
// Takes the kernel out of plans made from now on. Error self_check where it had been taken out before.
Result<void> impose(Session& session, const Quarantine& wrong, const Kernel& kernel);

class Prover {
 public:
  // `isolation` may be empty: everything is launched here. Both must outlive the prover.
  Prover(Session& session, Isolation isolation) : session_(session), isolation_(std::move(isolation)) {}

  // nullopt: `kernel` (by `tactic`, or as it chooses) is right at all `sizes`. Proofs are kept in the store, failures
  // are the caller's to quarantine.
  std::optional<ProofFailure> prove_at(const Kernel& kernel, const PreparedLayer& layer, int64_t expert,
                                       const std::vector<int64_t>& sizes, Judge& judge, std::string_view tactic = {});
  // The launch in a child alone, where no earlier proof or launch makes it needless.
  std::optional<ProofFailure> launch_apart(const Kernel& kernel, const LayerPlan& plan,
                                           const std::vector<int64_t>& sizes, std::string_view tactic = {});
  // The launches of several tactics in one child: what takes time is its start. If one of them fails nothing is known of
  // any, and launch_apart finds which.
  void launch_together(const Kernel& kernel, const LayerPlan& plan, const std::vector<int64_t>& sizes,
                       const std::vector<std::string>& tactics);
  // Notes a proof that was made elsewhere; written by flush().
  void add(const Kernel& kernel, const std::string& layer_class, int64_t m, const Comparison& comparison,
           std::string_view tactic = {});
  void flush();
  // What proofs of this process showed.
  using Key = std::tuple<std::string, const Kernel*, std::string, int64_t>;  // layer class, kernel, tactic, M
  const std::map<Key, Comparison>& comparisons() const { return comparisons_; }
  const ProofCounts& counts() const { return counts_; }
  // Why launches were not isolated; each once.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Session& session_;
  Isolation isolation_;
  std::set<Key> proven_, launched_;
  std::map<Key, Comparison> comparisons_;
  // What did not survive its launch is not launched again for any batch size of the class.
  std::map<std::tuple<std::string, const Kernel*, std::string>, ProofFailure> fatal_;
  std::vector<StoreEntry> rows_;
  ProofCounts counts_;
  std::vector<std::string> notes_;
};

}  // namespace gearshift
