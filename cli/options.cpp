#include "options.h"

#include <array>

namespace gearshift::cli {

namespace {

constexpr uint32_t kPlanning = kPlan | kRun | kVerify | kTune | kBench | kDoctor;
constexpr uint32_t kRunning = kRun | kVerify | kTune | kBench | kDoctor;
constexpr uint32_t kEvery = ~uint32_t{0};

constexpr std::array kOptions = {
    OptionSpec{"device", "", "D", kPlanning, true,
               "cpu, cuda, cuda:1, or a device to plan for that is not here (sm_90, gb10, h200, gfx950 ...); default: "
               "the best one here"},
    OptionSpec{"linear-backend", "", "B[,FAMILY=B...]", kPlanning, true,
               "prefer backend B, for all families or for one; auto (default): no filter. A family that B does not "
               "cover falls back, with a warning"},
    OptionSpec{"moe-backend", "", "B[,FAMILY=B...]", kPlanning, true, "the same for expert layers"},
    OptionSpec{"layer", "", "GLOB=B", kPlanning, true,
               "prefer backend B for the layers that match; repeatable, the most specific wins"},
    OptionSpec{"strict", "", "", kPlanning, true,
               "a requested backend that does not serve a layer is an error (exit 3) instead of a fallback"},
    OptionSpec{"disable", "", "P[,P...]", kPlanning, true,
               "leave out kernels, backends or families by name; * matches any characters"},
    OptionSpec{"batch", "", "M[,M...]", kPlanning, true, "batch sizes in tokens; default 1,8,16,64,256,1024,4096"},
    OptionSpec{"selection", "", "static|measured", kPlanning, true,
               "the priority lists alone, or measured results where there are any (default)"},
    OptionSpec{"arithmetic", "", "exact|higher|lossy", kPlanning, true,
               "may a kernel differ from the checkpoint's arithmetic: never, by activations of higher precision "
               "(default), or by repacked weights too"},
    OptionSpec{"single-kernel", "", "", kPlanning, true, "one kernel for all batch sizes of a layer"},
    OptionSpec{"dtype", "", "bf16|fp16|fp32", kPlanning, true, "activations and output; default: the checkpoint's"},
    OptionSpec{"threads", "", "N", kRunning | kPlan, true, "CPU threads; default: the cores this process may use"},
    OptionSpec{"fuse", "", "", kPlanning, true,
               "treat q/k/v, gate/up and the experts of a layer as one layer each (default)"},
    OptionSpec{"no-fuse", "", "", kPlanning, true, "one row for each module of the checkpoint"},
    OptionSpec{"layers", "", "GLOB", kPlanning, true, "only these layers"},
    OptionSpec{"explain", "", "NAME", kPlan | kRun | kVerify, true,
               "every candidate of this layer, stage by stage, with the reason"},
    OptionSpec{"input", "", "FILE", kRun, true,
               "activations: safetensors with one tensor x [M,K], or one per layer name"},
    OptionSpec{"output", "", "FILE", kRun, true, "write the results, one tensor [M,N] per layer name"},
    OptionSpec{"seed", "", "N", kRun | kVerify, true, "of the made-up activations"},
    OptionSpec{"kernel", "", "K", kRun | kVerify | kBench, true, "force one kernel"},
    OptionSpec{"scheme", "", "[GLOB=]S", kQuantize, true,
               "for all layers, or for those that match (repeatable, the most specific wins): NVFP4, NVFP4A16, "
               "FP8_DYNAMIC, UNQUANTIZED"},
    OptionSpec{"out", "-o", "DIR", kQuantize, true, "the checkpoint to write; must not exist or be empty"},
    OptionSpec{"container", "", "compressed-tensors|modelopt", kQuantize, true,
               "how it is written; default compressed-tensors"},
    OptionSpec{"calibration", "", "FILE", kQuantize, true,
               "safetensors of activations, one tensor a layer, for static scales"},
    OptionSpec{"registry", "", "gearshift|vllm|FILE", kPlanning, false, "which catalogue of kernels to plan with"},
    OptionSpec{"with", "", "P[,P]", kPlanning, false, "external libraries to assume on a device that is not here"},
    OptionSpec{"without", "", "P[,P]", kPlanning, false, "external libraries to take from that set"},
    OptionSpec{"assume", "", "NAME=VALUE[,...]", kPlanning, false, "switches and build facts of the vllm registry"},
    OptionSpec{"plugin", "", "FILE.so[,FILE...]", kPlanning, false, "kernels from elsewhere"},
    OptionSpec{"batch-invariant", "", "", kPlanning, false,
               "only kernels whose result for a token does not depend on the others"},
    OptionSpec{"memory-budget", "", "BYTES", kPlanning, false, "the most that extra copies of weights may take"},
    OptionSpec{"tp", "", "N|auto", kPlanning, false, "tensor-parallel degree"},
    OptionSpec{"lock", "", "FILE", kPlanning, false, "choose exactly what this earlier plan chose"},
    OptionSpec{"html", "", "FILE", kPlanning, false, "one self-contained page with tables and plots"},
    OptionSpec{"json", "", "[FILE]", kEvery, true,
               "machine-readable result to FILE or, instead of the table, to standard output. A word after it is FILE "
               "only behind MODEL; --json=FILE always works"},
    OptionSpec{"quiet", "-q", "", kEvery, true, "fewer log lines, no progress bar"},
    OptionSpec{"verbose", "-v", "", kEvery, true, "more log lines: each option and where it came from"},
    OptionSpec{"help", "-h", "", kEvery, true, "this page"},
};

}  // namespace

std::span<const OptionSpec> all_options() { return kOptions; }

const OptionSpec* find_option(std::string_view name) {
  for (const OptionSpec& spec : kOptions) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

}  // namespace gearshift::cli
