#include <array>

#include "gearshift/pipeline.h"

namespace gearshift {

namespace {

using Kind = OptionKind;
using Use = OptionUse;

constexpr uint32_t kPlanning = kPlan | kRun | kVerify | kTune | kBench | kDiff | kDoctor;
constexpr uint32_t kRunning = kRun | kVerify | kTune | kBench | kDoctor;
constexpr uint32_t kEvery = ~uint32_t{0};

constexpr std::array kOptionTable = {
    OptionSpec{"device", "", "D", Kind::value, Use::library, kPlanning, "cpu",
               "cpu, cuda, cuda:1, or a device to plan for that is not here (sm_90, gb10, h200, gfx950 ...); default: "
               "the best one here. plan takes A,B for ranks on unlike devices: one plan each, with the same "
               "arithmetic"},
    OptionSpec{
        "registry", "", "gearshift|vllm|FILE", Kind::value, Use::library, kPlanning | kKernels, "gearshift",
        "the catalogue of kernels to plan with: our own (default), what vLLM would choose, or a file of the same "
        "form (docs/registry.md); only our own runs"},
    OptionSpec{"with", "", "P[,P...]", Kind::list, Use::library, kPlanning, "what the engine's own packages bring",
               "with a registry of another engine: the libraries to assume, all of them (flashinfer, humming, "
               "deep_gemm, b12x, conch, aiter ...)"},
    OptionSpec{"without", "", "P[,P...]", Kind::list, Use::library, kPlanning, "none",
               "libraries to take from that set"},
    OptionSpec{"assume", "", "NAME=VALUE[,...]", Kind::list, Use::library, kPlanning, "the registry's defaults",
               "that engine's switches and facts of its build (VLLM_USE_DEEP_GEMM=0, cuda=12.3); this machine's "
               "environment is never asked"},
    OptionSpec{"linear-backend", "", "B[,FAMILY=B...]", Kind::list, Use::library, kPlanning, "auto",
               "prefer backend B, for all families or for one; auto (default): no filter. A family that B does not "
               "cover falls back, with a warning"},
    OptionSpec{"moe-backend", "", "B[,FAMILY=B...]", Kind::list, Use::library, kPlanning, "auto",
               "the same for expert layers"},
    OptionSpec{"layer", "", "GLOB=B", Kind::repeated, Use::library, kPlanning, "none",
               "prefer backend B for the layers that match; repeatable, the most specific wins"},
    OptionSpec{"strict", "", "", Kind::flag, Use::library, kPlanning, "0",
               "a requested backend that does not serve a layer is an error (exit 3) instead of a fallback"},
    OptionSpec{"disable", "", "P[,P...]", Kind::list, Use::library, kPlanning, "none",
               "leave out kernels, backends or families by name; * matches any characters"},
    OptionSpec{"batch", "", "M[,M...]", Kind::list, Use::library, kPlanning, "1,8,16,64,256,1024,4096",
               "batch sizes in tokens; default 1,8,16,64,256,1024,4096"},
    OptionSpec{"selection", "", "static|measured", Kind::value, Use::library, kPlanning, "measured",
               "the priority lists alone, or measured results where there are any (default)"},
    OptionSpec{"arithmetic", "", "exact|higher|lossy", Kind::value, Use::library, kPlanning, "higher",
               "may a kernel differ from the checkpoint's arithmetic: never, by activations of higher precision "
               "(default), or by repacked weights too"},
    OptionSpec{"single-kernel", "", "", Kind::flag, Use::library, kPlanning, "0",
               "one kernel for all batch sizes of a layer"},
    OptionSpec{
        "batch-invariant", "", "", Kind::flag, Use::library, kPlanning, "0",
        "only kernels whose result for a token does not depend on the others, and one kernel for all batch sizes"},
    OptionSpec{"memory-budget", "", "BYTES", Kind::value, Use::library, kPlanning, "0",
               "the most that second packed copies of weights may take in all (512MiB, 2G); default 0"},
    OptionSpec{"tp", "", "N|auto", Kind::value, Use::library, kPlanning, "",
               "tensor-parallel degree: plan (or verify) the shard of each rank; auto lists the degrees that need no rescue"},
    OptionSpec{"dtype", "", "bf16|fp16|fp32", Kind::value, Use::library, kPlanning, "the checkpoint's",
               "activations and output; default: the checkpoint's"},
    OptionSpec{"threads", "", "N", Kind::value, Use::library, kRunning | kPlan, "the cores this process may use",
               "CPU threads; default: the cores this process may use"},
    OptionSpec{"fuse", "", "", Kind::flag, Use::library, kPlanning, "1",
               "treat q/k/v, gate/up and the experts of a layer as one layer each (default)"},
    OptionSpec{"no-fuse", "", "", Kind::flag, Use::library, kPlanning, "", "one row for each module of the checkpoint"},
    OptionSpec{"layers", "", "GLOB", Kind::value, Use::library, kPlanning, "*", "only these layers"},
    OptionSpec{"explain", "", "NAME", Kind::value, Use::library, kPlan | kRun | kVerify, "",
               "every candidate of this layer, stage by stage, with the reason"},
    OptionSpec{"input", "", "FILE", Kind::value, Use::library, kRun, "",
               "activations: safetensors with one tensor x [M,K], or one per layer name; expert blocks (...experts) "
               "with topk_ids "
               "and topk_weights [M,top_k] beside them"},
    OptionSpec{"output", "", "FILE", Kind::value, Use::library, kRun, "",
               "write the results, one tensor [M,N] per layer name"},
    OptionSpec{"seed", "", "N", Kind::value, Use::library, kRun | kVerify | kBench, "0",
               "of made-up activations and weights"},
    OptionSpec{"kernel", "", "K", Kind::value, Use::library, kRun | kVerify | kBench, "", "force one kernel"},
    OptionSpec{"shape", "", "N,K", Kind::repeated, Use::library, kBench, "",
               "a layer of N outputs and K inputs; repeatable"},
    OptionSpec{
        "moe",
        "", "E,TOPK,N,K", Kind::repeated, Use::library, kBench, "",
        "a block of E experts, TOPK of them for each token, each with gate and up of N x K and down of K x N: grouped "
        "and expert by expert, under uniform and Zipf routing; repeatable"},
    OptionSpec{"family", "", "F[,F...]", Kind::list, Use::library, kBench, "",
               "what --shape and --moe are quantized as: the most common scheme of each family; default bf16"},
    OptionSpec{"model", "", "DIR|config.json", Kind::value, Use::library, kBench, "",
               "time the shapes and schemes of this model's layers, with made-up weights; its config.json is enough"},
    OptionSpec{"scheme", "", "[GLOB=]S", Kind::repeated, Use::library, kQuantize | kBench, "",
               "quantize: for all layers, or for those that match (repeatable, the most specific wins): NVFP4, "
               "NVFP4A16, FP8_DYNAMIC, UNQUANTIZED. bench: of --shape and --moe, S[,S...] instead of --family; also "
               "W8A8, W8A16, W4A8, "
               "FP8A16, MXFP4A16, MXFP8A16"},
    OptionSpec{"out", "-o", "DIR", Kind::value, Use::library, kQuantize, "",
               "the checkpoint to write; must not exist or be empty"},
    OptionSpec{"container", "", "compressed-tensors|modelopt", Kind::value, Use::library, kQuantize,
               "compressed-tensors", "how it is written; default compressed-tensors"},
    OptionSpec{"calibration", "", "FILE", Kind::value, Use::library, kQuantize, "",
               "safetensors of activations, one tensor a layer, for static scales"},
    OptionSpec{"plugin", "", "FILE.so[,FILE...]", Kind::list, Use::library, kPlanning, "",
               "kernels from elsewhere (docs/plugins.md)"},
    OptionSpec{"mode", "", "graph|eager", Kind::value, Use::library, kPlanning, "graph on CUDA, else eager",
               "how kernels will be launched: which measurements count, and how tune takes them"},
    OptionSpec{"time-budget", "", "SECONDS", Kind::value, Use::library, kTune, "none",
               "the most that tune may take; what it did not get to keeps its default"},
    OptionSpec{
        "memory-limit", "", "BYTES", Kind::value, Use::library, kTune | kBench, "none",
        "the most scratch and activations that tune may hold; the most that bench may hold (half of the machine's "
        "memory where it is silent, of which it takes some 3 GB)"},
    OptionSpec{"lock", "", "FILE", Kind::value, Use::library, kPlanning, "",
               "choose exactly what this earlier plan chose"},
    OptionSpec{"html", "", "FILE", Kind::value, Use::front_end, kPlan | kRun | kVerify, "",
               "one self-contained page with tables and plots"},
    OptionSpec{"lint", "", "", Kind::flag, Use::front_end, kKernels, "",
               "what the registry's lists promise and do not keep; exit 1 when something is found"},
    OptionSpec{"markdown", "", "", Kind::flag, Use::front_end, kKernels, "", "the support matrix as Markdown"},
    OptionSpec{"json", "", "[FILE]", Kind::value, Use::front_end, kEvery, "",
               "machine-readable result to FILE or, instead of the table, to standard output. A word after it is FILE "
               "only behind MODEL; --json=FILE always works"},
    OptionSpec{"quiet", "-q", "", Kind::flag, Use::front_end, kEvery, "", "fewer log lines, no progress bar"},
    OptionSpec{"verbose", "-v", "", Kind::flag, Use::front_end, kEvery, "",
               "more log lines: each option and where it came from"},
    OptionSpec{"help", "-h", "", Kind::flag, Use::front_end, kEvery, "", "this page"},
    OptionSpec{"store", "", "FILE|off", Kind::value, Use::library, 0, "",
               "where measurements, proofs and quarantines are kept; default: "
               "$XDG_STATE_HOME/gearshift/store.sqlite"},
    OptionSpec{"isolation", "", "", Kind::flag, Use::library, 0, "1",
               "the first launch of a kernel happens in a child process with a time limit"},
    OptionSpec{"launch-limit", "", "SECONDS", Kind::value, Use::library, 0, "10",
               "how long one launch in a child process may take, and more for large batches"},
    OptionSpec{"max-isa", "", "ISA", Kind::value, Use::library, 0, "the highest of this CPU",
               "steps the CPU's instruction set down: portable, avx2 ..."},
};

}  // namespace

std::span<const OptionSpec> all_options() { return kOptionTable; }

const OptionSpec* find_option(std::string_view name) {
  for (const OptionSpec& spec : kOptionTable) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

std::string variable_of(std::string_view option) {
  std::string variable = "GEARSHIFT_";
  for (const char c : option) variable += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return variable;
}

}  // namespace gearshift
