#include "kernel/cpu/isa.h"

#include <atomic>

#include "device/cpu_features.h"

namespace gearshift {

namespace {

Isa host_isa() {
  static const Isa host = detect_isa();
  return host;
}

std::atomic<Isa>& active() {
  static std::atomic<Isa> isa{host_isa()};
  return isa;
}

}  // namespace

void set_max_isa(Isa max) { active() = isa_covers(host_isa(), max) ? max : host_isa(); }

Isa active_isa() { return active().load(std::memory_order_relaxed); }

}  // namespace gearshift
