// What the processor offers and the operating system lets a process use. Both count: a kernel that does not save the
// zmm or tile registers makes AVX-512 or AMX code fault although cpuid lists it.
#pragma once

#include <string>

#include "gearshift/device.h"

namespace gearshift {

// The highest level that code of this process may execute. For AMX this asks the kernel for the tile state once.
Isa detect_isa();
// "x86_64", "aarch64": what this program was built for.
std::string_view machine_arch();
// The processor's own name ("AMD EPYC 9B45 96-Core Processor"); "" where it has none.
std::string cpu_brand();

}  // namespace gearshift
