// What is known about one choice when its verdicts are written: candidates behind their gates, and who serves what.
#pragma once

#include <map>

#include "plan/gates.h"
#include "plan/ranges.h"
#include "plan/requests.h"

namespace gearshift {

// The measured times of one candidate, by batch size.
using MeasuredPoints = std::map<int64_t, const MeasuredTime*>;

struct Choice {
  const LayerSpec& layer;  // as the registry sees it
  const RequestRule& request;
  const SelectionContext& context;
  std::vector<ListEntry> lines;            // list order, after the registry's moves
  std::vector<GatedCandidate> candidates;  // one for each line
  LayoutChoice layout;                     // assignments by position in `candidates`
  bool heard = false;                      // the request filters this list
  bool filtered = false;                   // and serves every batch size: nobody else is looked at
  bool locked = false;                     // the assignments are those of the locked plan
  std::string layer_class = {};
  std::vector<MeasuredPoints> times = {};  // by position in `candidates`
};

inline const Kernel& kernel_of(const GatedCandidate& candidate) { return *candidate.entry->kernel; }
// The candidate belongs to the requested backend.
inline bool asked_for(const GatedCandidate& candidate, const RequestRule& request) {
  return kernel_of(candidate).backend == request.backend;
}

// One verdict for each candidate, list order.
std::vector<Verdict> verdicts_of(const Choice& choice);
// What stops each kernel of the requested backend from serving the batch sizes `missing`, as one sentence.
std::string why_not_usable(const Choice& choice, const BatchSet& missing);

}  // namespace gearshift
