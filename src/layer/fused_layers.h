// A model's layers as serving engines fuse them. A config that stands alone states that the experts of a layer are
// alike: then one of them is read for all.
#pragma once

#include "gearshift/layer.h"

namespace gearshift {

struct FusedLayers {
  ModelLayers model;            // as read_layers gives it; of alike experts only the first
  std::vector<LayerSpec> rows;  // fused
  int64_t linear_layers = 0;    // modules, all experts counted
};
// Errors: those of read_layers.
Result<FusedLayers> read_fused_layers(const Checkpoint& checkpoint, bool allow_unknown);

}  // namespace gearshift
