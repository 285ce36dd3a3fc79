// Kernel::run knows its arguments alone: engines that serve several uses and layouts are bound to one of each.
#pragma once

#include "gearshift/kernel.h"

namespace gearshift::cuda {

using Run = void (*)(const RunArgs& args);

template <auto Engine, ActivationUse Use, const Layout* Packed>
void run_bound(const RunArgs& args) {
  Engine(args, Use, *Packed);
}

// `Engine` for this use and one of `Served`; nullptr: another layout.
template <auto Engine, const Layout*... Served>
Run bound_run(ActivationUse use, const Layout& layout) {
  Run run = nullptr;
  const auto bind = [&](const Layout* served, Run as_checkpoint, Run float16) {
    if (&layout == served) run = use == ActivationUse::as_checkpoint ? as_checkpoint : float16;
  };
  (bind(Served, run_bound<Engine, ActivationUse::as_checkpoint, Served>,
        run_bound<Engine, ActivationUse::float16, Served>),
   ...);
  return run;
}

}  // namespace gearshift::cuda
