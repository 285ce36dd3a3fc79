#include <array>

#include "gearshift/kernel.h"
#include "kernel/cpu/lists.h"
#include "kernel/cuda/lists.h"
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

const KernelList* host_reference(Platform platform, Family family) {
  for (const KernelList& list : host_references()) {
    if (list.platform == platform && list.family == family) return &list;
  }
  return nullptr;
}

}  // namespace

const KernelList* Registry::find(const LayerCase& layer_case) const {
  const Platform platform = layer_case.device.platform;
  const Family family = layer_case.layer.family;
  const LayerKind kind = rules.expert_lists ? layer_case.layer.kind : LayerKind::linear;
  bool anything = false;
  for (const KernelList& list : lists) {
    if (list.platform != platform) continue;
    anything = true;
    if (list.family == family && list.kind == kind && holds(list.when, layer_case)) return &list;
  }
  return anything || !rules.host_stands_in ? nullptr : host_reference(platform, family);
}

const KernelList* Registry::find(Platform platform, Family family) const {
  LayerSpec layer;
  layer.family = family;
  DeviceProfile device;
  device.platform = platform;
  static const Assumptions none;
  return find({layer, device, DType::bf16, none});
}

const Fact* Registry::find_fact(std::string_view fact_name) const {
  for (const Fact& fact : facts) {
    if (fact.name == fact_name) return &fact;
  }
  return nullptr;
}

const Kernel* Registry::find_kernel(std::string_view kernel_name, Platform platform) const {
  const Kernel* any = nullptr;
  for (const KernelList& list : lists) {
    for (const ListEntry& entry : list.entries) {
      if (entry.kernel->name != kernel_name) continue;
      if (entry.kernel->platform == platform) return entry.kernel;
      any = entry.kernel;
    }
  }
  return any;
}

const Registry& builtin_registry() {
  static const Registry registry = [] {
    Registry all{"gearshift", cpu_lists()};
    for (KernelList& list : cuda_lists()) all.lists.push_back(std::move(list));
    return all;
  }();
  return registry;
}

std::span<const std::string_view> known_backends() {
  static constexpr std::array<std::string_view, 33> backends = {
      // ours
      "native", "emulation", "reference", "cublaslt",
      // linear layers of serving engines
      "aiter", "allspark", "b12x", "conch", "cutlass", "deep_gemm", "exllama", "fbgemm", "flashinfer_b12x",
      "flashinfer_cudnn", "flashinfer_cutedsl", "flashinfer_cutlass", "flashinfer_trtllm", "humming", "machete",
      "marlin", "torch", "triton", "xpu", "xpu_woq",
      // their expert layers alone
      "aiter_triton_mxfp4_bf16", "batched_triton", "deep_gemm_mega_moe", "flashinfer_moe_ep_mega_cutedsl",
      "flashinfer_moe_ep_mega_deep_gemm", "flydsl", "hpc", "rdna3", "triton_unfused"};
  return backends;
}

}  // namespace gearshift
