#include <array>

#include "gearshift/kernel.h"
#include "kernel/cpu/lists.h"
#include "kernel/reference/reference.h"

namespace gearshift {

namespace {

// What a platform gets for which nothing is written: the host computes.
const std::vector<KernelList>& host_references() {
  static const std::vector<KernelList> lists = [] {
    std::vector<KernelList> all;
    for (Platform platform : {Platform::cpu, Platform::cuda, Platform::rocm, Platform::xpu}) {
      for (Family family : all_families()) {
        all.push_back(
            {platform, family, {{&reference_kernel, 1, 0, "nothing is written for this platform: the host computes"}}});
      }
    }
    return all;
  }();
  return lists;
}

const KernelList* find_in(const std::vector<KernelList>& lists, Platform platform, Family family) {
  for (const KernelList& list : lists) {
    if (list.platform == platform && list.family == family) return &list;
  }
  return nullptr;
}

}  // namespace

const KernelList* Registry::find(Platform platform, Family family) const {
  if (const KernelList* list = find_in(lists, platform, family)) return list;
  for (const KernelList& list : lists) {
    if (list.platform == platform) return nullptr;
  }
  return find_in(host_references(), platform, family);
}

const Registry& builtin_registry() {
  static const Registry registry{"gearshift", cpu_lists()};
  return registry;
}

std::span<const std::string_view> known_backends() {
  static constexpr std::array<std::string_view, 32> backends = {
      // ours
      "native", "emulation", "reference", "cublaslt",
      // linear layers of serving engines
      "aiter", "allspark", "b12x", "conch", "cutlass", "deep_gemm", "exllama", "fbgemm", "flashinfer_b12x",
      "flashinfer_cudnn", "flashinfer_cutedsl", "flashinfer_cutlass", "flashinfer_trtllm", "humming", "machete",
      "marlin", "torch", "triton", "xpu", "xpu_woq",
      // their expert layers alone
      "aiter_triton_mxfp4_bf16", "batched_triton", "deep_gemm_mega_moe", "flashinfer_moe_ep_mega_cutedsl",
      "flashinfer_moe_ep_mega_deep_gemm", "flydsl", "hpc", "rdna3"};
  return backends;
}

}  // namespace gearshift
