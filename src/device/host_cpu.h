// The parts of host_cpu that can be tried without the machine.
#pragma once

#include <string>

#include "gearshift/device.h"

namespace gearshift {

// The level to use when the processor offers `have` and the user allows `max_isa` ("" for no limit): never more than
// `have`. Error usage: a name that is unknown, or of another architecture.
Result<Isa> limit_isa(Isa have, std::string_view max_isa);
// "model name" of /proc/cpuinfo text with runs of blanks joined; "" when there is none.
std::string cpuinfo_model(const std::string& text);

}  // namespace gearshift
