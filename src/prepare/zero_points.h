// Zero points that a symmetric layer stores although its scheme says what they are.
#pragma once

#include <optional>

#include "gearshift/layer.h"

namespace gearshift {

// A sentence about the first zero point of `stored` (`bytes`, of one expert; n output rows) that does not repeat what
// symmetric weights imply; nullopt where all do. Zeros throughout say nothing, except to GPTQ and AWQ, whose writers
// store the middle of the range.
std::optional<std::string> contradicting_zero_points(const LayerSpec& layer, int64_t n, const StoredTensor& stored,
                                                     ByteView bytes);

}  // namespace gearshift
