#include "verbs.h"

#include <array>

namespace gearshift::cli {

namespace {

constexpr std::array kVerbs = {
    VerbSpec{kPlan, "plan", "MODEL", 1, 1,
             "choose a kernel for every linear layer and batch size, and say why; reads headers only", plan},
    VerbSpec{kRun, "run", "MODEL", 1, 1,
             "run the planned kernels here, check each against the reference, print error and time", run},
    VerbSpec{kVerify, "verify", "MODEL", 1, 1,
             "check every kernel the plan can use against the reference; exit 5 when one fails", verify},
    VerbSpec{kTune, "tune", "MODEL", 1, 1, "measure the candidates here and keep the results", tune},
    VerbSpec{kBench, "bench", "", 0, 0,
             "time kernels on given shapes or those of a model, beside what this machine can do at most", bench},
    VerbSpec{kQuantize, "quantize", "MODEL", 1, 1, "write a quantized checkpoint from a bf16, fp16 or fp32 one",
             quantize},
    VerbSpec{kInspect, "inspect", "MODEL", 1, 1, "what is in a checkpoint: tensors, schemes, sizes", inspect},
    VerbSpec{
        kDiff, "diff", "PLAN PLAN|MODEL", 1, 2,
        "what changed between two plans, or between two plans of one model with one option given twice; exit 1 when "
        "something did",
        diff},
    VerbSpec{kKernels, "kernels", "", 0, 0, "every kernel, what it accepts, and whether it can run here", kernels},
    VerbSpec{kDevices, "devices", "", 0, 0, "this machine's devices and those one can plan for", devices},
    VerbSpec{kDoctor, "doctor", "", 0, 0,
             "device, build, options and a launch test of each kernel: what a bug report needs", doctor},
    VerbSpec{
        kStore, "store", "ACTION [FILE]", 1, 2,
        "list, verify, export FILE, import FILE, merge STORE or prune [KERNEL]: measurements, proofs and quarantines",
        store},
    VerbSpec{kCompletion, "completion", "bash|zsh|fish", 1, 1,
             "print the script that completes this command's words in a shell", completion},
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
