// Kernels from shared objects (gearshift_plugin.h), turned into kernels like our own.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift {

// `base` with the kernels of `files` behind its own in the lists. A file is loaded once in a process and never
// unloaded. Error usage: no such file, no plugin, a version we do not speak, or a descriptor that makes no sense; names
// the file and the field.
Result<Registry> with_plugins(const Registry& base, const std::vector<std::string>& files);

}  // namespace gearshift
