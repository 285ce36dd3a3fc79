// Which rows of a store apply here.
#pragma once

#include "gearshift/device.h"
#include "gearshift/store.h"

namespace gearshift {

RunEnvironment environment_of(const DeviceProfile& device);

// How kernels are launched on a platform unless the user says otherwise.
std::string default_mode(Platform platform);

}  // namespace gearshift
