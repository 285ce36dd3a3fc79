// Scheme names of `bench` -> what such a checkpoint says about its layers.
#pragma once

#include "gearshift/layer.h"

namespace gearshift {

// The presets of compressed-tensors that a kernel list serves, any case; the inverse of scheme_name() of layer.h. W8A8
// is INT8's other name. Error usage: lists near and valid names.
Result<Scheme> preset_scheme(std::string_view name);

// Every name that preset_scheme knows.
std::vector<std::string_view> preset_names();

}  // namespace gearshift
