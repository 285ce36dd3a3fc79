// Whether a quantization dictionary treats all experts of a layer alike.
#pragma once

#include "base/json.h"

namespace gearshift {

// False where some key or text of `dict` might tell one expert's number from another's: a number that does not follow a
// word such as "layers", or a pattern with alternatives, classes or counts behind "expert". False is always safe.
bool treats_experts_alike(const Json& dict);

}  // namespace gearshift
