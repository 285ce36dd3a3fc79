#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "gearshift/layer.h"
#include "layer/modules.h"
#include "layer/quant_config.h"
#include "layer/scheme/scheme.h"

namespace gearshift {
namespace {

Result<std::unique_ptr<SchemeReader>> open_scheme(const ModelConfig& config) {
  const QuantConfig& quant = config.quant;
  for (const SchemeEntry* scheme : all_schemes()) {
    if (scheme->recognises(quant)) return scheme->open(config);
  }
  if (const RefusedFormat* format = refused_by_config(quant); format != nullptr) return refusal(*format, quant.source);
  static constexpr RefusedFormat kUnknown = {"unknown", "a quantization method that Gearshift does not know",
                                             "quantize the original float checkpoint with `gearshift quantize`"};
  ErrorInfo error = refusal(kUnknown, quant.source);
  error.found = quant.method.empty() ? "a quantization dictionary without quant_method"
                                     : "quant_method \"" + printable(quant.method, 60) + "\"";
  return error;
}

// The reader of a checkpoint's scheme; with `allow_unknown` one that refuses module by module where the whole is
// refused.
Result<std::unique_ptr<SchemeReader>> open_reader(const ModelConfig& config, bool allow_unknown) {
  Result<std::unique_ptr<SchemeReader>> reader = open_scheme(config);
  if (reader.ok() || !allow_unknown || reader.error().code != ErrorCode::unsupported_scheme) return reader;
  return open_refused(reader.error(), config);
}

uint64_t stored_bytes(const ModuleScheme& read) {
  uint64_t bytes = 0;
  for (const StoredTensor& tensor : read.tensors) {
    const bool scale =
        tensor.role == TensorRole::weight_scale && read.scheme.weight.grouping.kind != Grouping::Kind::tensor;
    if (tensor.role != TensorRole::weight && !scale) continue;
    uint64_t elements = 1;
    for (int64_t d : tensor.shape) elements *= static_cast<uint64_t>(d);
    bytes += elements * static_cast<uint64_t>(bits(tensor.dtype)) / 8;
  }
  return bytes;
}

LayerSpec make_layer(const ModuleTensors& module, ModuleScheme read) {
  LayerSpec layer;
  layer.name = module.name;
  if (read.experts > 0) {
    layer.kind = LayerKind::experts;
    layer.experts = read.experts;
    layer.stacked = true;
  } else if (expert_name(module.name)) {
    layer.kind = LayerKind::experts;
    layer.experts = 1;
  }
  layer.row_order = read.row_order;
  layer.family = family_of(read.scheme);
  layer.n = read.n;
  layer.k = read.k;
  layer.bias = std::any_of(read.tensors.begin(), read.tensors.end(),
                           [](const StoredTensor& tensor) { return tensor.role == TensorRole::bias; });
  layer.scheme = read.scheme;
  layer.weight_bytes = stored_bytes(read);
  layer.modules.push_back({module.name, read.n, std::move(read.tensors)});
  return layer;
}

// The name of what is skipped: the module, or the loose parameter where the matrix has a name of its own.
std::string skipped_name(const ModuleTensors& module) {
  for (const auto& [suffix, tensor] : module.tensors) {
    if (suffix.starts_with("weight") || suffix == "qweight") return module.name;
  }
  for (const auto& [suffix, tensor] : module.tensors) {
    if (is_float(tensor->dtype) && tensor->shape.size() >= 2) return tensor->name;
  }
  return module.name;
}

DType activation_dtype(const Checkpoint& checkpoint, const ModelConfig& config) {
  if (config.dtype) return *config.dtype;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (is_float(tensor.dtype) && std::string_view(tensor.name).ends_with(".weight")) return tensor.dtype;
  }
  return DType::bf16;
}

}  // namespace

Result<ModelLayers> read_layers(const Checkpoint& checkpoint, bool allow_unknown) {
  GEARSHIFT_TRY(const ModelConfig config, read_model_config(checkpoint));
  GEARSHIFT_TRY(const std::unique_ptr<SchemeReader> reader, open_reader(config, allow_unknown));

  ModelLayers model;
  model.architecture = config.architecture;
  model.quant_method = config.quant.method;
  model.dtype = activation_dtype(checkpoint, config);
  for (ErrorInfo& error : reader->refusals()) {
    if (!allow_unknown) return std::move(error);
    model.unknown.push_back({error.subject, error.found});
  }

  for (const ModuleTensors& module : group_modules(checkpoint, config)) {
    const ModuleKind kind = kind_of(module);
    if (kind == ModuleKind::matrix) model.skipped.push_back(skipped_name(module));
    if (kind != ModuleKind::linear) continue;
    const RefusedFormat* refused = refused_by_tensors(module);
    Result<ModuleScheme> read =
        refused != nullptr ? Result<ModuleScheme>(refusal(*refused, module.name)) : reader->read(module);
    if (read.ok()) {
      model.layers.push_back(make_layer(module, *std::move(read)));
    } else if (allow_unknown && read.error().code == ErrorCode::unsupported_scheme) {
      const bool listed = std::any_of(model.unknown.begin(), model.unknown.end(),
                                      [&](const UnknownModule& unknown) { return unknown.name == module.name; });
      if (!listed) model.unknown.push_back({module.name, read.error().found});
    } else {
      return read.error();
    }
  }
  return model;
}

}  // namespace gearshift
