// Layers to ask a registry about: for each family the schemes that checkpoints have, in shapes round and awkward.
#pragma once

#include "gearshift/layer.h"

namespace gearshift {

// Without modules and names: enough for contracts, not for kernels.
std::vector<LayerSpec> sample_layers(Family family, LayerKind kind);

}  // namespace gearshift
