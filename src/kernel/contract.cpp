// Walks a contract's fields in the order of their declaration; the first that says no is the verdict.
#include <algorithm>

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

std::string text(std::string_view value) { return std::string(value); }
std::string text(int64_t value) { return std::to_string(value); }
std::string text(Format value) { return std::string(name(value)); }
std::string text(Storage value) { return std::string(name(value)); }
std::string text(DType value) { return std::string(name(value)); }
std::string text(Grouping::Kind kind) {
  switch (kind) {
    case Grouping::Kind::tensor:
      return "tensor";
    case Grouping::Kind::row:
      return "row";
    case Grouping::Kind::group:
      return "group";
    case Grouping::Kind::whole_row:
      return "whole_row";
    case Grouping::Kind::block:
      return "block";
  }
  return "";
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
                   subject + " is not a multiple of " + text(bounds.multiple));
  }
  return std::nullopt;
}

std::optional<Refusal> device_refuses(const Kernel& kernel, const DeviceProfile& device) {
  const Contract& contract = kernel.contract;
  // A CPU kernel serves any other platform too, from the host; its instruction set is then the least one.
  if (kernel.platform != device.platform && kernel.platform != Platform::cpu) {
    return refusal(Stage::device, "platform", text(name(device.platform)), text(name(kernel.platform)),
                   "runs on " + text(name(kernel.platform)) + ", not on " + text(name(device.platform)));
  }
  if (kernel.platform == Platform::cpu && !isa_covers(device.isa, contract.isa)) {
    return refusal(
        Stage::device, "isa", text(name(device.isa)), text(name(contract.isa)),
        "needs the instruction set " + text(name(contract.isa)) + "; this processor offers " + text(name(device.isa)));
  }
  if (!contract.archs.empty() &&
      std::find(contract.archs.begin(), contract.archs.end(), device.arch) == contract.archs.end()) {
    const std::string wanted = one_of(contract.archs);
    return refusal(Stage::device, "archs", device.arch, wanted,
                   "is built for " + wanted + ", the device is " + device.arch);
  }
  return std::nullopt;
}

std::optional<Refusal> scheme_refuses(const Contract& contract, const LayerSpec& layer, DType dtype) {
  const WeightScheme& weight = layer.scheme.weight;
  if (auto no = outside("weight_formats", contract.weight_formats, weight.format, "weights are")) return no;
  if (auto no = outside("storages", contract.storages, weight.storage, "weights are stored as")) return no;
  const bool quantized = layer.scheme.quantized;
  const Grouping::Kind kind = weight.grouping.kind;
  if (quantized) {
    if (auto no = outside("groupings", contract.groupings, kind, "weight scales are per")) return no;
    if (kind == Grouping::Kind::group || kind == Grouping::Kind::block) {
      if (auto no = outside("groups", contract.groups, weight.grouping.cols, "columns per scale:")) return no;
    }
    if (auto no = outside("scale_dtypes", contract.scale_dtypes, weight.scale, "scales are")) return no;
  } else if (!layer.modules.empty()) {
    for (const Module& module : layer.modules) {
      for (const StoredTensor& tensor : module.tensors) {
        if (tensor.role != TensorRole::weight) continue;
        if (auto no = outside("weight_dtypes", contract.weight_dtypes, tensor.dtype, "weights are")) return no;
      }
    }
  }
  if (!contract.activation_formats.empty()) {
    if (!layer.scheme.activation) {
      const std::string wanted = one_of(contract.activation_formats);
      return refusal(Stage::layer, "activation_formats", "none", wanted,
                     "the checkpoint does not quantize activations; this kernel takes " + wanted);
    }
    if (auto no = outside("activation_formats", contract.activation_formats, layer.scheme.activation->format,
                          "the checkpoint asks for activations in")) {
      return no;
    }
  }
  return outside("dtypes", contract.dtypes, dtype, "activations and outputs are");
}

std::optional<Refusal> shape_refuses(const Contract& contract, const LayerSpec& layer) {
  if (auto no = outside("n", "N", contract.n, layer.n)) return no;
  if (auto no = outside("k", "K", contract.k, layer.k)) return no;
  // Divided, because the product of two sizes from a file may not fit.
  if (layer.n > 0 && layer.k > contract.max_weight_elements / layer.n) {
    const std::string limit = text(contract.max_weight_elements);
    return refusal(Stage::layer, "max_weight_elements", text(layer.n) + " x " + text(layer.k), "at most " + limit,
                   "N x K = " + text(layer.n) + " x " + text(layer.k) + " is more than " + limit + " elements");
  }
  return std::nullopt;
}

std::optional<Refusal> feature_refuses(const Contract& contract, const LayerSpec& layer) {
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
  const bool grouped = grouping.kind == Grouping::Kind::group || grouping.kind == Grouping::Kind::block;
  if (!contract.partial_groups && layer.scheme.quantized && grouped && grouping.cols > 0 && grouping.rows > 0 &&
      (layer.k % grouping.cols != 0 || layer.n % grouping.rows != 0)) {
    const std::string group = text(grouping.rows) + " x " + text(grouping.cols);
    return refusal(Stage::layer, "partial_groups", text(layer.n) + " x " + text(layer.k), "whole groups of " + group,
                   "N x K = " + text(layer.n) + " x " + text(layer.k) + " ends inside a scale group of " + group);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Refusal> refuses(const Kernel& kernel, const LayerSpec& layer, const DeviceProfile& device, DType dtype) {
  if (auto no = device_refuses(kernel, device)) return no;
  if (auto no = scheme_refuses(kernel.contract, layer, dtype)) return no;
  if (auto no = shape_refuses(kernel.contract, layer)) return no;
  return feature_refuses(kernel.contract, layer);
}

}  // namespace gearshift
