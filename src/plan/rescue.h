// A selection for a shard: the next kernel of the list where one takes its shape, else zero padding, else 16-bit
// weights.
#pragma once

#include "plan/select.h"

namespace gearshift {

// select() for whole layers. A shard whose scale groups are cut, or that only slow kernels or other backends than the
// requested one take, is tried with padding too, where the registry's rules allow it; the rescue that is used is in the
// decision. Of other registries uneven shares are refused, but for output heads: engines fill vocabularies up.
Selection select_rescued(const LayerSpec& layer, const RequestRule& request, const ListRoute* route,
                         const SelectionContext& context, Layouts layouts = Layouts::one,
                         const RecordedLayer* locked = nullptr);

// The number that stands in the way of a row that has no kernel, from its verdicts; empty where none does.
struct Obstacle {
  std::string field, found, wanted;
};
Obstacle obstacle_of(const std::vector<Verdict>& candidates);

// Whether a decision leaves no batch size out, as those of refused plans may.
bool serves_every_batch(const Decision& decision);

}  // namespace gearshift
