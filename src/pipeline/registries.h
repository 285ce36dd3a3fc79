// The registry that --registry names.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// "gearshift", "vllm", or a file of docs/registry.md's form. Error usage: no such file, or one that does not read.
Result<Registry> open_registry(const std::string& word);

}  // namespace gearshift
