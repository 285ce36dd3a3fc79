// Walks a contract's fields stage by stage, in the order of their declaration; the first that says no is the verdict.
#include <algorithm>
#include <exception>

#include "base/text.h"
#include "device/cuda.h"
#include "gearshift/kernel.h"

namespace gearshift {

std::string_view name(Stage stage) {
  switch (stage) {
    case Stage::policy:
      return "policy";
    case Stage::build:
      return "build";
    case Stage::device:
      return "device";
    case Stage::layer:
      return "layer";
    case Stage::self_check:
      return "self_check";
    case Stage::rank:
      return "rank";
  }
  return "";
}

namespace {

// K of the whole layer, whatever part of it a rank holds.
int64_t full_k(const LayerSpec& layer) { return layer.shard ? layer.shard->whole->k : layer.k; }

std::string text(std::string_view value) { return std::string(value); }
std::string text(int64_t value) { return std::to_string(value); }
std::string text(Format value) { return std::string(name(value)); }
std::string text(Storage value) { return std::string(name(value)); }
std::string text(DType value) { return std::string(name(value)); }
std::string text(Grouping::Kind value) { return std::string(name(value)); }
std::string text(Granularity value) { return std::string(name(value)); }

// "exactly 90", "75 and up", "10x" for a whole generation.
std::string text(const CapabilityRange& range) {
  if (range.max == 0) return text(int64_t{range.min}) + " and up";
  if (range.min == range.max) return "exactly " + text(int64_t{range.min});
  if (range.min % 10 == 0 && range.max == range.min + 9) return text(int64_t{range.min / 10}) + "x";
  return text(int64_t{range.min}) + " to " + text(int64_t{range.max});
}

template <class T>
std::string one_of(const std::vector<T>& allowed) {
  std::string list;
  for (const T& value : allowed) list += (list.empty() ? "" : ", ") + text(value);
  return allowed.size() == 1 ? list : "one of " + list;
}

Refusal refusal(Stage stage, std::string_view field, std::string found, std::string wanted, std::string reason) {
  return {stage, std::string(field), std::move(found), std::move(wanted), std::move(reason)};
}

// `what` begins the sentence: "weights are int4; this kernel takes one of e2m1".
template <class T>
std::optional<Refusal> outside(std::string_view field, const std::vector<T>& allowed, const T& found,
                               std::string_view what) {
  if (allowed.empty() || std::find(allowed.begin(), allowed.end(), found) != allowed.end()) return std::nullopt;
  const std::string wanted = one_of(allowed);
  return refusal(Stage::layer, field, text(found), wanted,
                 std::string(what) + " " + text(found) + "; this kernel takes " + wanted);
}

// " (1824 mod 256 = 32)".
std::string remainder(int64_t found, int64_t multiple) {
  return " (" + text(found) + " mod " + text(multiple) + " = " + text(found % multiple) + ")";
}

std::optional<Refusal> outside(std::string_view field, std::string_view letter, const Bounds& bounds, int64_t found) {
  const std::string subject = std::string(letter) + " " + text(found);
  if (found < bounds.min) {
    return refusal(Stage::layer, field, text(found), "at least " + text(bounds.min),
                   subject + " is less than " + text(bounds.min));
  }
  if (bounds.max != 0 && found > bounds.max) {
    return refusal(Stage::layer, field, text(found), "at most " + text(bounds.max),
                   subject + " is more than " + text(bounds.max));
  }
  if (found % bounds.multiple != 0) {
    return refusal(Stage::layer, field, text(found), "a multiple of " + text(bounds.multiple),
                   subject + " is not a multiple of " + text(bounds.multiple) + remainder(found, bounds.multiple));
  }
  return std::nullopt;
}

// ---- stages policy and build ----------------------------------------------------------------------------------------

std::string wanted_text(const FactTest& test) {
  switch (test.kind) {
    case FactTest::Kind::is:
      return text(test.value);
    case FactTest::Kind::is_not:
      return "anything but " + text(test.value);
    case FactTest::Kind::at_least:
      return "at least " + text(test.value);
    case FactTest::Kind::given:
      return "stated";
    case FactTest::Kind::not_given:
      return "not stated";
  }
  return "";
}

std::optional<Refusal> library_refuses(const Contract& contract, const DeviceProfile& device) {
  if (!device.present) return std::nullopt;  // a machine that is not here is taken to have them
  for (const std::string_view library : contract.libraries) {
    if (library != "cublaslt" || cuda::has_cublaslt()) continue;
    return refusal(Stage::device, "libraries", "none", text(library),
                   "needs cuBLASLt, which was not found: put the folder of libcublasLt.so on LD_LIBRARY_PATH");
  }
  return std::nullopt;
}

std::optional<Refusal> facts_refuse(const Contract& contract, const Assumptions& assumptions, Stage stage) {
  for (const FactTest& test : contract.facts) {
    if (test.stage != stage || holds(test, assumptions)) continue;
    const std::string found = text(assumptions.fact(test.fact)), wanted = wanted_text(test);
    return refusal(stage, test.fact, found, wanted,
                   "needs " + text(test.fact) + " to be " + wanted + "; it is assumed to be " +
                       (found.empty() ? "unset" : found) + " (--assume " + text(test.fact) + "=VALUE)");
  }
  return std::nullopt;
}

std::optional<Refusal> packages_refuse(const Contract& contract, const Assumptions& assumptions) {
  for (std::string_view package : contract.packages) {
    if (assumptions.has_package(package)) continue;
    return refusal(Stage::build, "packages", "absent", text(package),
                   "needs " + text(package) + ", which is not assumed to be installed (--with names what is)");
  }
  return std::nullopt;
}

bool any_covers(const std::vector<std::string_view>& targets, std::string_view arch) {
  return targets.empty() ||
         std::any_of(targets.begin(), targets.end(), [&](std::string_view t) { return target_covers(t, arch); });
}

std::optional<Refusal> generation_refuses(const Contract& contract, const DeviceProfile& device);

std::optional<Refusal> code_refuses(const Kernel& kernel, const Contract& contract, const DeviceProfile& device) {
  // The device stage says so: no build would help.
  if (kernel.platform != device.platform || generation_refuses(contract, device)) return std::nullopt;
  if (contract.targets == std::vector<std::string_view>{"none"}) {
    return refusal(
        Stage::build, "targets", "none", device.arch,
        "this build has no CUDA code: install the CUDA toolkit (12.8 or newer), configure again and rebuild");
  }
  if (!any_covers(contract.targets, device.arch)) {
    const std::string found = one_of(contract.targets);
    return refusal(Stage::build, "targets", found, device.arch,
                   "this build holds its code for " + found + ", and none for " + device.arch +
                       ": add it to GEARSHIFT_CUDA_ARCHITECTURES and rebuild");
  }
  for (const HelperOp& helper : contract.helpers) {
    const bool served = std::any_of(contract.helpers.begin(), contract.helpers.end(), [&](const HelperOp& other) {
      return other.role == helper.role && any_covers(other.targets, device.arch);
    });
    if (served) continue;
    return refusal(Stage::build, "helpers", text(helper.name) + ": " + one_of(helper.targets), device.arch,
                   "needs " + text(helper.role) + ", and " + text(helper.name) + " has no code for " + device.arch);
  }
  return std::nullopt;
}

// ---- stage device ---------------------------------------------------------------------------------------------------

// A CPU kernel serves any other platform too, from the host; its instruction set is then the least one.
std::optional<Refusal> platform_refuses(const Kernel& kernel, const DeviceProfile& device) {
  if (kernel.platform == device.platform) return std::nullopt;
  if (kernel.platform == Platform::cpu && kernel.layout != &engine_layout) return std::nullopt;
  return refusal(Stage::device, "platform", text(name(device.platform)), text(name(kernel.platform)),
                 "runs on " + text(name(kernel.platform)) + ", not on " + text(name(device.platform)));
}

std::optional<Refusal> generation_refuses(const Contract& contract, const DeviceProfile& device) {
  if (!contract.capabilities.empty() && device.capability > 0 && !lies_in(contract.capabilities, device.capability)) {
    const std::string found = text(int64_t{device.capability}), wanted = one_of(contract.capabilities);
    return refusal(Stage::device, "capabilities", found, wanted,
                   "is for device capability " + wanted + "; " + device.name + " has " + found);
  }
  const bool admitted =
      contract.archs.empty() || std::any_of(contract.archs.begin(), contract.archs.end(),
                                            [&](std::string_view arch) { return glob_match(arch, device.arch); });
  if (admitted) return std::nullopt;
  const std::string wanted = one_of(contract.archs);
  return refusal(Stage::device, "archs", device.arch, wanted,
                 "is built for " + wanted + ", the device is " + device.arch);
}

std::optional<Refusal> device_refuses(const Kernel& kernel, const Contract& contract, const DeviceProfile& device) {
  if (kernel.platform == Platform::cpu && !isa_covers(device.isa, contract.isa)) {
    return refusal(
        Stage::device, "isa", text(name(device.isa)), text(name(contract.isa)),
        "needs the instruction set " + text(name(contract.isa)) + "; this processor offers " + text(name(device.isa)));
  }
  if (auto no = generation_refuses(contract, device)) return no;
  return library_refuses(contract, device);
}

// ---- stage layer ----------------------------------------------------------------------------------------------------

bool is_grouped(const Grouping& grouping) {
  return grouping.kind == Grouping::Kind::group || grouping.kind == Grouping::Kind::block;
}

std::optional<Refusal> groups_refuse(const Contract& contract, const LayerSpec& layer) {
  const Grouping& grouping = layer.scheme.weight.grouping;
  if (auto no = outside("groupings", contract.groupings, grouping.kind, "weight scales are per")) return no;
  if (!is_grouped(grouping)) return std::nullopt;
  const bool full_row = contract.full_row_groups && grouping.cols == full_k(layer);
  if (!full_row) {
    if (auto no = outside("groups", contract.groups, grouping.cols, "columns per scale:")) return no;
  }
  const Bounds multiple{1, 0, contract.group_multiple};
  if (auto no = outside("group_multiple", "columns per scale:", multiple, grouping.cols)) return no;
  if (grouping.kind == Grouping::Kind::block)
    return outside("group_rows", "rows per scale:", contract.group_rows, grouping.rows);
  return std::nullopt;
}

std::optional<Refusal> float_weights_refuse(const Contract& contract, const LayerSpec& layer) {
  for (const Module& module : layer.modules) {
    for (const StoredTensor& tensor : module.tensors) {
      if (tensor.role != TensorRole::weight) continue;
      if (auto no = outside("weight_dtypes", contract.weight_dtypes, tensor.dtype, "weights are")) return no;
    }
  }
  return std::nullopt;
}

std::optional<Refusal> weights_refuse(const Contract& contract, const LayerSpec& layer) {
  const WeightScheme& weight = layer.scheme.weight;
  if (auto no = outside("weight_formats", contract.weight_formats, weight.format, "weights are")) return no;
  if (!contract.weight_types.empty()) {
    const std::string type = weight_type(layer.scheme);
    if (auto no = outside("weight_types", contract.weight_types, std::string_view(type), "weights are")) return no;
  }
  if (auto no = outside("storages", contract.storages, weight.storage, "weights are stored as")) return no;
  if (!layer.scheme.quantized) return float_weights_refuse(contract, layer);
  if (auto no = groups_refuse(contract, layer)) return no;
  return outside("scale_dtypes", contract.scale_dtypes, weight.scale, "scales are");
}

std::optional<Refusal> activations_refuse(const Contract& contract, const LayerSpec& layer) {
  const std::optional<ActivationScheme>& activation = layer.scheme.activation;
  if (!activation) {
    if (contract.activation_formats.empty() || contract.activations_optional) return std::nullopt;
    const std::string wanted = one_of(contract.activation_formats);
    return refusal(Stage::layer, "activation_formats", "none", wanted,
                   "the checkpoint does not quantize activations; this kernel takes " + wanted);
  }
  if (auto no = outside("activation_formats", contract.activation_formats, activation->format,
                        "the checkpoint asks for activations in")) {
    return no;
  }
  if (auto no = outside("activation_granularities", contract.activation_granularities, activation->granularity,
                        "activation scales are per")) {
    return no;
  }
  if (activation->granularity == Granularity::token_group) {
    if (auto no = outside("activation_groups", contract.activation_groups, activation->group,
                          "columns per activation scale:")) {
      return no;
    }
  }
  if (contract.activation_dynamic && *contract.activation_dynamic != activation->dynamic) {
    const auto word = [](bool dynamic) { return std::string(dynamic ? "dynamic" : "static"); };
    const std::string found = word(activation->dynamic), wanted = word(*contract.activation_dynamic);
    return refusal(Stage::layer, "activation_dynamic", found, wanted,
                   "activation scales are " + found + "; this kernel takes " + wanted + " ones");
  }
  return std::nullopt;
}

std::optional<Refusal> shape_refuses(const Contract& contract, const LayerSpec& layer) {
  if (auto no = outside("n", "N", contract.n, layer.n)) return no;
  if (auto no = outside("k", "K", contract.k, layer.k)) return no;
  if (const int width = bits(layer.scheme.weight.format); contract.whole_words && width > 0) {
    if (auto no = outside("whole_words", "N", {1, 0, 32 / width}, layer.n)) return no;
  }
  // Divided, because the product of two sizes from a file may not fit.
  if (layer.n > 0 && layer.k > contract.max_weight_elements / layer.n) {
    const std::string limit = text(contract.max_weight_elements);
    return refusal(Stage::layer, "max_weight_elements", text(layer.n) + " x " + text(layer.k), "at most " + limit,
                   "N x K = " + text(layer.n) + " x " + text(layer.k) + " is more than " + limit + " elements");
  }
  return std::nullopt;
}

std::optional<Refusal> group_fit_refuses(const Contract& contract, const LayerSpec& layer) {
  const Grouping& grouping = layer.scheme.weight.grouping;
  const GroupFit fit = contract.group_fit;
  if (fit == GroupFit::anywhere || !layer.scheme.quantized || !is_grouped(grouping) || grouping.cols <= 0)
    return std::nullopt;
  if (fit == GroupFit::local_k_of_narrow_groups && grouping.cols >= full_k(layer)) return std::nullopt;
  const int64_t k = fit == GroupFit::full_k ? full_k(layer) : layer.k;
  if (k % grouping.cols == 0) return std::nullopt;
  return refusal(Stage::layer, "group_fit", text(k), "a multiple of " + text(grouping.cols),
                 std::string(fit == GroupFit::full_k ? "full K " : "K ") + text(k) + " ends inside a scale group of " +
                     text(grouping.cols) + " columns" + remainder(k, grouping.cols));
}

std::optional<Refusal> features_refuse(const Contract& contract, const LayerSpec& layer) {
  const WeightScheme& weight = layer.scheme.weight;
  const auto without = [](std::string_view field, std::string_view reason) {
    return refusal(Stage::layer, field, "yes", "no", std::string(reason));
  };
  if (!contract.zero_points && layer.scheme.quantized && !weight.symmetric) {
    return without("zero_points", "weights have zero points; this kernel takes symmetric weights");
  }
  if (!contract.act_order && weight.act_order) {
    return without("act_order",
                   "columns are assigned to groups by an index (act-order); this kernel takes groups in order");
  }
  if (!contract.bias && layer.bias) return without("bias", "the layer has a bias; this kernel adds none");
  if (!contract.experts && layer.kind == LayerKind::experts) {
    return without("experts", "the layer holds experts; this kernel takes single linear layers");
  }
  if (!contract.pre_scale && layer.scheme.pre_scale) {
    return without("pre_scale", "activations are multiplied by a stored vector first; this kernel does not do that");
  }
  const Grouping& grouping = weight.grouping;
  if (!contract.partial_groups && layer.scheme.quantized && is_grouped(grouping) && grouping.cols > 0 &&
      grouping.rows > 0 && (layer.k % grouping.cols != 0 || layer.n % grouping.rows != 0)) {
    const std::string group = text(grouping.rows) + " x " + text(grouping.cols);
    return refusal(
        Stage::layer, "partial_groups", text(layer.n) + " x " + text(layer.k), "whole groups of " + group,
        "N x K = " + text(layer.n) + " x " + text(layer.k) + " ends inside a scale group of " + group +
            (layer.k % grouping.cols != 0 ? remainder(layer.k, grouping.cols) : remainder(layer.n, grouping.rows)));
  }
  const std::optional<ActivationScheme>& activation = layer.scheme.activation;
  if (!contract.asymmetric_activations && activation && !activation->symmetric) {
    return without("asymmetric_activations", "activations have zero points; this kernel takes symmetric activations");
  }
  if (!contract.both_per_tensor && activation && activation->granularity == Granularity::tensor &&
      grouping.kind == Grouping::Kind::tensor) {
    return without("both_per_tensor", "weights and activations have one scale each; this kernel takes finer scales");
  }
  return std::nullopt;
}

std::optional<Refusal> layer_refuses(const Contract& contract, const LayerCase& layer_case) {
  const LayerSpec& layer = layer_case.layer;
  if (auto no = weights_refuse(contract, layer)) return no;
  if (auto no = activations_refuse(contract, layer)) return no;
  if (auto no = outside("dtypes", contract.dtypes, layer_case.dtype, "activations and outputs are")) return no;
  const std::string_view model_type = layer_case.assumptions.model_type;
  const auto& others = contract.other_model_types;
  if (std::find(others.begin(), others.end(), model_type) != others.end()) {
    return refusal(Stage::layer, "other_model_types", text(model_type), "a model type other than " + text(model_type),
                   "is not used for models of type " + text(model_type));
  }
  if (auto no = shape_refuses(contract, layer)) return no;
  if (auto no = group_fit_refuses(contract, layer)) return no;
  return features_refuse(contract, layer);
}

// `check` on the contract, then on what it says for these circumstances.
template <class Check>
std::optional<Refusal> first_refusal(const Contract& contract, const LayerCase& layer_case, const Check& check) {
  if (auto no = check(contract)) return no;
  for (const ConditionalContract& more : contract.where) {
    if (!holds(more.when, layer_case)) continue;
    if (auto no = first_refusal(more.contract, layer_case, check)) return no;
  }
  return std::nullopt;
}

// Asked of the contract itself alone: a conditional one that is silent about offsets allows them.
std::optional<Refusal> offset_refuses(const Contract& contract, const LayerSpec& layer) {
  if (contract.shard_offset || !layer.shard || !layer.shard->offset) return std::nullopt;
  return refusal(Stage::layer, "shard_offset", "yes", "no",
                 "a rank's shard begins inside a scale group of the whole layer; this kernel takes whole groups");
}

// A probe is foreign code: what it throws is a no for this kernel, and is kept.
std::optional<Refusal> probe_refuses(const Kernel& kernel, const LayerSpec& layer, const DeviceProfile& device,
                                     DType dtype) {
  if (kernel.probe == nullptr) return std::nullopt;
  const auto failed = [](const std::string& what) {
    return refusal(Stage::build, "probe", what, "an answer", "optional library missing: its probe failed with " + what);
  };
  try {
    return kernel.probe(layer, device, dtype);
  } catch (const std::exception& error) {
    return failed(std::string("'") + error.what() + "'");
  } catch (...) {
    return failed("an exception of unknown type");
  }
}

// "sm_100a" -> {100, 'a'}.
struct Target {
  int number = 0;
  char suffix = 0;
};
Target parse_target(std::string_view digits) {
  Target target;
  if (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f')) {
    target.suffix = digits.back();
    digits.remove_suffix(1);
  }
  for (char c : digits) {
    if (c < '0' || c > '9' || target.number > 9999) return {};
    target.number = target.number * 10 + (c - '0');
  }
  return target;
}

}  // namespace

bool target_covers(std::string_view target, std::string_view arch) {
  constexpr std::string_view binary = "sm_", assembly = "compute_";
  if (target == arch) return true;
  if (arch.substr(0, binary.size()) != binary) return false;
  const int device = parse_target(arch.substr(binary.size())).number;
  if (device == 0) return false;
  if (target.substr(0, assembly.size()) == assembly) {
    const Target code = parse_target(target.substr(assembly.size()));
    return code.number != 0 && (code.suffix == 0 ? code.number <= device : code.number == device);
  }
  if (target.substr(0, binary.size()) != binary) return false;
  const Target code = parse_target(target.substr(binary.size()));
  if (code.number == 0) return false;
  if (code.suffix == 'a') return code.number == device;
  return code.number / 10 == device / 10 && code.number <= device;
}

std::optional<Refusal> refuses(const Kernel& kernel, const LayerCase& layer_case, Stage last) {
  const auto first = [&](const auto& check) { return first_refusal(kernel.contract, layer_case, check); };
  const Assumptions& assumptions = layer_case.assumptions;
  if (auto no = first([&](const Contract& c) { return facts_refuse(c, assumptions, Stage::policy); })) return no;
  if (last == Stage::policy) return std::nullopt;
  if (auto no = first([&](const Contract& c) { return packages_refuse(c, assumptions); })) return no;
  if (auto no = first([&](const Contract& c) { return facts_refuse(c, assumptions, Stage::build); })) return no;
  if (auto no = first([&](const Contract& c) { return code_refuses(kernel, c, layer_case.device); })) return no;
  if (last == Stage::build) return std::nullopt;
  if (auto no = platform_refuses(kernel, layer_case.device)) return no;
  if (auto no = first([&](const Contract& c) { return device_refuses(kernel, c, layer_case.device); })) return no;
  if (last == Stage::device) return std::nullopt;
  if (auto no = first([&](const Contract& c) { return layer_refuses(c, layer_case); })) return no;
  if (auto no = offset_refuses(kernel.contract, layer_case.layer)) return no;
  return probe_refuses(kernel, layer_case.layer, layer_case.device, layer_case.dtype);
}

std::optional<Refusal> refuses(const Kernel& kernel, const LayerSpec& layer, const DeviceProfile& device, DType dtype) {
  static const Assumptions none;
  return refuses(kernel, {layer, device, dtype, none});
}

}  // namespace gearshift
