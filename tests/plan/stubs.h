// Hand-made layers, devices and kernels: selection without a checkpoint and without a GPU.
#pragma once

#include <deque>
#include <stdexcept>
#include <utility>

#include "gearshift/plan.h"

namespace gearshift::stubs {

// ---- layers ---------------------------------------------------------------------------------------------------------

inline LayerSpec layer_of(std::string name, Scheme scheme, int64_t n, int64_t k) {
  LayerSpec layer;
  layer.name = std::move(name);
  layer.scheme = std::move(scheme);
  layer.family = family_of(layer.scheme);
  layer.n = n;
  layer.k = k;
  layer.modules = {{layer.name, n, {{TensorRole::weight, layer.name + ".weight", DType::bf16, {n, k}}}}};
  layer.weight_bytes = static_cast<uint64_t>(n) * static_cast<uint64_t>(k);
  return layer;
}

inline Scheme float_scheme() { return {}; }

inline Scheme quantized(Format format, Storage storage, Grouping grouping, DType scale) {
  Scheme scheme;
  scheme.quantized = true;
  scheme.weight.format = format;
  scheme.weight.storage = storage;
  scheme.weight.grouping = grouping;
  scheme.weight.scale = scale;
  return scheme;
}

inline Grouping groups_of(int64_t columns) { return {Grouping::Kind::group, 1, columns}; }

inline Scheme nvfp4_w4a16_scheme() {
  Scheme scheme = quantized(Format::e2m1, Storage::nibbles, groups_of(16), DType::f8_e4m3);
  scheme.weight.global_scale = scheme.weight.global_divides = true;
  return scheme;
}

inline Scheme nvfp4_scheme() {
  Scheme scheme = nvfp4_w4a16_scheme();
  ActivationScheme activation;
  activation.format = Format::e2m1;
  activation.granularity = Granularity::token_group;
  activation.group = 16;
  activation.stored_scale = activation.stored_multiplies = true;
  scheme.activation = activation;
  return scheme;
}

inline Scheme mx_scheme(Format weight, Storage storage, Format activation_format) {
  Scheme scheme = quantized(weight, storage, groups_of(32), DType::f8_e8m0);
  ActivationScheme activation;
  activation.format = activation_format;
  activation.granularity = Granularity::token_group;
  activation.group = 32;
  activation.rule = ScaleRule::e8m0_floor;
  scheme.activation = activation;
  return scheme;
}
inline Scheme mxfp4_scheme() { return mx_scheme(Format::e2m1, Storage::nibbles, Format::e2m1); }
inline Scheme mxfp8_scheme() { return mx_scheme(Format::e4m3, Storage::dense, Format::e4m3); }

// One scale per output row, activations quantized per token.
inline Scheme fp8_channel_scheme() {
  Scheme scheme = quantized(Format::e4m3, Storage::dense, {Grouping::Kind::row, 1, 0}, DType::bf16);
  scheme.activation = ActivationScheme{};
  return scheme;
}

inline Scheme fp8_block_scheme() {
  Scheme scheme = quantized(Format::e4m3, Storage::dense, {Grouping::Kind::block, 128, 128}, DType::f32);
  ActivationScheme activation;
  activation.granularity = Granularity::token_group;
  activation.group = 128;
  scheme.activation = activation;
  return scheme;
}

inline Scheme int8_scheme() {
  Scheme scheme = quantized(Format::int8, Storage::dense, {Grouping::Kind::row, 1, 0}, DType::bf16);
  scheme.activation = ActivationScheme{};
  scheme.activation->format = Format::int8;
  return scheme;
}

// `group` -1: the checkpoint says one group a row.
inline Scheme awq_scheme(int64_t group) {
  Scheme scheme = quantized(Format::uint4, Storage::awq, groups_of(group), DType::f16);
  if (group < 0) scheme.weight.grouping = {Grouping::Kind::whole_row, 1, 0};
  scheme.weight.symmetric = false;
  return scheme;
}

// ---- devices --------------------------------------------------------------------------------------------------------

inline DeviceProfile here() {
  DeviceProfile device;
  device.name = "Stub CPU";
  device.arch = "x86_64+avx2";
  device.isa = Isa::avx2;
  device.present = true;
  device.cores = 2;
  return device;
}

inline DeviceProfile elsewhere(std::string arch, Platform platform = Platform::cuda) {
  DeviceProfile device;
  device.name = "Stub " + arch;
  device.platform = platform;
  device.arch = std::move(arch);
  return device;
}

// ---- kernels --------------------------------------------------------------------------------------------------------

// Bytes of one linear layer in each packed layout, and how often a workspace was asked for: once per batch size of each
// decision, so that tests can count decisions.
inline constexpr int64_t kPackedBytes = 1000;
inline int64_t& workspace_questions() {
  static int64_t count = 0;
  return count;
}

// Owns kernels, layouts and lists; the registry's pointers stay valid as long as it lives.
class StubRegistry {
 public:
  explicit StubRegistry(Platform platform = Platform::cpu) : platform_(platform) { registry_.name = "stubs"; }

  // Appends a kernel to the list of `family` and returns it to be narrowed.
  Kernel& add(Family family, std::string name, std::string backend) {
    Kernel& kernel = kernels_.emplace_back();
    kernel.name = kept(std::move(name));
    kernel.backend = kept(std::move(backend));
    kernel.platform = platform_;
    kernel.families = {family};
    kernel.contract.verified = {"*"};
    kernel.workspace_bytes = [](const LayerSpec&, int64_t m, int) {
      ++workspace_questions();
      return 10 * m;
    };
    list(family).entries.push_back({&kernel, 1, 0, ""});
    return kernel;
  }
  // The list line of the kernel added last.
  ListEntry& line(Family family) { return list(family).entries.back(); }

  KernelList& list(Family family) {
    for (KernelList& known : registry_.lists)
      if (known.family == family) return known;
    registry_.lists.push_back({platform_, family, {}});
    return registry_.lists.back();
  }

  const Layout* layout(std::string name) {
    Layout& layout = layouts_.emplace_back();
    layout.name = kept(std::move(name));
    layout.bytes = [](const LayerSpec&) { return kPackedBytes; };
    return &layout;
  }

  const Registry& registry() const { return registry_; }

 private:
  std::string_view kept(std::string text) { return texts_.emplace_back(std::move(text)); }

  Platform platform_;
  Registry registry_;
  std::deque<Kernel> kernels_;
  std::deque<Layout> layouts_;
  std::deque<std::string> texts_;
};

// ---- plans ----------------------------------------------------------------------------------------------------------

inline Result<Plan> plan_of(const StubRegistry& stubs, std::vector<LayerSpec> layers, Policy policy = {},
                            DeviceProfile device = here(), const Store& store = {}) {
  ModelLayers model;
  model.layers = layers;
  PlanRequest request;
  request.model = &model;
  request.layers = std::move(layers);
  request.device = std::move(device);
  request.policy = std::move(policy);
  request.registry = &stubs.registry();
  request.store = &store;
  return make_plan(std::move(request));
}

inline Policy prefer(std::string backend) {
  Policy policy;
  policy.linear.global = std::move(backend);
  return policy;
}

inline Policy strictly(Policy policy) {
  policy.strict = true;
  return policy;
}

// "a 1..16, b 17.." of a row.
inline std::string served(const Decision& decision) {
  std::string text;
  for (const PlannedRange& range : decision.ranges) {
    if (!text.empty()) text += ", ";
    text += std::string(range.kernel->name) + " " + std::to_string(range.m_min) + "..";
    if (range.m_max != 0) text += std::to_string(range.m_max);
  }
  return text;
}
inline std::string served(const Plan& plan, size_t row = 0) { return served(*plan.layers.at(row).decision); }

inline const Verdict& verdict(const Plan& plan, std::string_view kernel, size_t row = 0) {
  for (const Verdict& verdict : plan.layers.at(row).decision->candidates)
    if (verdict.kernel->name == kernel) return verdict;
  throw std::out_of_range("no verdict for " + std::string(kernel));
}

inline std::vector<std::string> codes(const Plan& plan) {
  std::vector<std::string> codes;
  for (const Warning& warning : plan.warnings) codes.push_back(warning.code);
  return codes;
}

inline const Warning& warning(const Plan& plan, std::string_view code) {
  for (const Warning& warning : plan.warnings)
    if (warning.code == code) return warning;
  throw std::out_of_range("no warning " + std::string(code));
}

inline bool mentions(std::string_view text, std::string_view words) {
  return text.find(words) != std::string_view::npos;
}

}  // namespace gearshift::stubs
