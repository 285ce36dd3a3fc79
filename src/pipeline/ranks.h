// Several processes of one job, as a launcher started them: who we are, and how rows go around. Files in the store's
// folder carry them; nothing is locked while one rank waits for another.
#pragma once

#include "pipeline/session.h"

namespace gearshift {

struct Ranks {
  int rank = 0, size = 1;
  std::string job;       // the same for all ranks of a job, another for the next job
  double limit_s = 600;  // how long to wait for the others

  // Work item `item` is ours.
  bool ours(size_t item) const { return static_cast<int>(item % static_cast<size_t>(size)) == rank; }
};
// From the variables of torchrun, Open MPI, Slurm or PMI; one rank where there are none, or where they make no sense.
Ranks ranks_of(const std::function<const char*(const char*)>& environment);

// Puts `text` where the others read it, and waits for theirs; in order of rank. `topic` names the exchange. Error
// runtime: a rank that did not answer, or a folder that cannot be written.
Result<std::vector<std::string>> exchange(const Ranks& ranks, const std::string& store_path, const std::string& topic,
                                          const std::string& text);

// The times of all ranks as one: of two with one key the slower one, for the slowest rank decides.
std::vector<MeasuredTime> slowest(const std::vector<std::vector<StoreEntry>>& by_rank);

// Error runtime naming the first lines in which ranks differ; each text is one rank's plan, a line a layer.
Result<void> check_agreement(const std::vector<std::string>& plans);

// Rows go around, the slowest rank decides, and every rank sees that all have the same plan: that of session.store from
// here on. Errors: those of exchange and check_agreement; usage without a store.
Result<void> agree(const Ranks& ranks, Session& session, const Registry& registry);

}  // namespace gearshift
