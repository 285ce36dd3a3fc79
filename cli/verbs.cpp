#include "verbs.h"

#include <array>

namespace gearshift::cli {

namespace {

constexpr std::array kVerbs = {
    VerbSpec{kPlan, "plan", "MODEL",
             "choose a kernel for every linear layer and batch size, and say why; reads headers only", plan},
    VerbSpec{kRun, "run", "MODEL",
             "run the planned kernels here, check each against the reference, print error and time", run},
    VerbSpec{kVerify, "verify", "MODEL",
             "check every kernel the plan can use against the reference; exit 5 when one fails", verify},
    VerbSpec{kTune, "tune", "MODEL", "measure the candidates here and keep the results", nullptr},
    VerbSpec{kBench, "bench", "", "time kernels on given shapes", nullptr},
    VerbSpec{kQuantize, "quantize", "MODEL", "write a quantized checkpoint from a bf16, fp16 or fp32 one", quantize},
    VerbSpec{kInspect, "inspect", "MODEL", "what is in a checkpoint: tensors, schemes, sizes", inspect},
    VerbSpec{kDiff, "diff", "", "what changed between two plans", nullptr},
    VerbSpec{kKernels, "kernels", "", "every kernel, what it accepts, and whether it can run here", kernels},
    VerbSpec{kDevices, "devices", "", "this machine's devices and those one can plan for", devices},
    VerbSpec{kDoctor, "doctor", "", "device, build, options and a launch test of each kernel: what a bug report needs",
             doctor},
    VerbSpec{kStore, "store", "", "list, verify, export, import, merge or prune measurements and quarantines", nullptr},
};

}  // namespace

std::span<const VerbSpec> all_verbs() { return kVerbs; }

const VerbSpec* find_verb(std::string_view name) {
  for (const VerbSpec& verb : kVerbs) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

}  // namespace gearshift::cli
