#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "base/text.h"
#include "base/try.h"
#include "gearshift/layer.h"
#include "layer/alike_experts.h"
#include "layer/architecture/architecture.h"
#include "layer/expected_module.h"
#include "layer/fused_layers.h"
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

// Reads modules one by one into a model.
class Collector {
 public:
  Collector(const SchemeReader& reader, bool allow_unknown, ModelLayers* model)
      : reader_(reader), allow_unknown_(allow_unknown), model_(model) {}

  // What the config says cannot be loaded.
  Result<void> add_refusals() {
    for (ErrorInfo& error : reader_.refusals()) {
      if (!allow_unknown_) return std::move(error);
      add_unknown(error.subject, error.found);
    }
    return {};
  }

  Result<void> add(const ModuleTensors& module) {
    const ModuleKind kind = kind_of(module);
    if (kind == ModuleKind::matrix) model_->skipped.push_back(skipped_name(module));
    if (kind != ModuleKind::linear) return {};
    const RefusedFormat* refused = refused_by_tensors(module);
    Result<ModuleScheme> read =
        refused != nullptr ? Result<ModuleScheme>(refusal(*refused, module.name)) : reader_.read(module);
    if (!read.ok()) return add_error(module.name, read.error());
    model_->layers.push_back(make_layer(module, *std::move(read)));
    return {};
  }

  // A module that could not be read; one of an unknown scheme is listed where that is allowed.
  Result<void> add_error(const std::string& name, const ErrorInfo& error) {
    if (!allow_unknown_ || error.code != ErrorCode::unsupported_scheme) return error;
    add_unknown(name, error.found);
    return {};
  }

 private:
  void add_unknown(const std::string& name, const std::string& found) {
    if (listed_.insert(name).second) model_->unknown.push_back({name, found});
  }

  const SchemeReader& reader_;
  bool allow_unknown_;
  ModelLayers* model_;
  std::unordered_set<std::string> listed_;
};

// Where a module's own scheme cannot hold its shape, such as an odd number of columns with two codes a byte.
ErrorInfo does_not_fit(const FloatModule& module) {
  return ErrorInfo{ErrorCode::damaged_checkpoint,
                   "config.json: " + module.name,
                   "a shape of " + std::to_string(module.n) + " x " + std::to_string(module.k),
                   "one that its quantization can store",
                   "sizes and quantization in the config do not belong together",
                   {}};
}

// The modules of a config that stands alone, in the order that tensors would give them.
Result<void> add_expected_modules(const ModelConfig& config, const SchemeReader& reader, Collector* collector,
                                  const ModelLayers& model, ExpertCounts* counts) {
  GEARSHIFT_TRY(std::vector<FloatModule> modules, float_modules(config, counts));
  std::sort(modules.begin(), modules.end(),
            [](const FloatModule& a, const FloatModule& b) { return natural_less(a.name, b.name); });
  for (const FloatModule& module : modules) {
    const size_t before = model.layers.size();
    const Result<ExpectedModule> expected = ExpectedModule::make(module, reader, model.dtype);
    if (!expected.ok()) {
      GEARSHIFT_CHECK(collector->add_error(module.name, expected.error()));
      continue;
    }
    const Result<void> added = collector->add(expected->tensors());
    // An error about a tensor that nobody has stored would mislead.
    const bool of_tensor = !added.ok() && added.error().code == ErrorCode::damaged_checkpoint &&
                           std::string_view(added.error().subject).starts_with(module.name);
    if (!added.ok() && !of_tensor) return added.error();
    const bool fits = added.ok() && (model.layers.size() == before ||
                                     (model.layers.back().n == module.n && model.layers.back().k == module.k));
    if (!fits) return does_not_fit(module);
  }
  return {};
}

// `counts`: where given, and all experts of a layer are alike, only the first of them is read.
Result<ModelLayers> read(const Checkpoint& checkpoint, bool allow_unknown, ExpertCounts* counts = nullptr) {
  GEARSHIFT_TRY(const ModelConfig config, read_model_config(checkpoint));
  GEARSHIFT_TRY(const std::unique_ptr<SchemeReader> reader, open_reader(config, allow_unknown));

  ModelLayers model;
  model.architecture = config.architecture;
  model.model_type = config.model_type;
  model.quant_method = config.quant.method;
  model.dtype = activation_dtype(checkpoint, config);
  Collector collector(*reader, allow_unknown, &model);
  GEARSHIFT_CHECK(collector.add_refusals());
  if (checkpoint.files().empty()) {
    if (config.quant.dict != nullptr && !treats_experts_alike(*config.quant.dict)) counts = nullptr;
    GEARSHIFT_CHECK(add_expected_modules(config, *reader, &collector, model, counts));
    return model;
  }
  for (const ModuleTensors& module : group_modules(checkpoint, config)) GEARSHIFT_CHECK(collector.add(module));
  return model;
}

// Readers know side files by their names alone; the user gave a path.
std::string with_path(const std::string& subject, const std::string& model) {
  constexpr std::string_view kNames[] = {"config.json",       "hf_quant_config.json",     "quantize_config.json",
                                         "quant_config.json", "quantization_config.json", "params.json"};
  for (const std::string_view name : kNames) {
    if (!subject.starts_with(name)) continue;
    const std::filesystem::path path(model);
    std::error_code ignored;
    const bool is_folder = std::filesystem::is_directory(path, ignored);
    const bool is_config = !is_folder && name == "config.json" && path.extension() == ".json";
    const std::filesystem::path file = is_config ? path : (is_folder ? path : path.parent_path()) / name;
    return file.string() + subject.substr(name.size());
  }
  return subject;
}

Result<ModelLayers> with_path(Result<ModelLayers> model, const Checkpoint& checkpoint) {
  if (model.ok()) return model;
  ErrorInfo error = model.error();
  error.subject = with_path(error.subject, checkpoint.path());
  return error;
}

// A row of the first expert becomes that of all. Where they only stand in a config their tensors have no names to keep.
void count_in(int64_t experts, LayerSpec& row) {
  const size_t parts = row.modules.size();
  row.experts = experts;
  row.weight_bytes *= static_cast<uint64_t>(experts);
  row.modules.reserve(parts * static_cast<size_t>(experts));
  for (int64_t e = 1; e < experts; ++e) {
    for (size_t p = 0; p < parts; ++p) {
      const std::optional<ExpertName> first = expert_name(row.modules[p].name);
      std::string name = std::string(first->container) + "." + std::to_string(e) + "." + std::string(first->rest);
      row.modules.push_back({std::move(name), row.modules[p].n, {}});
    }
  }
}

}  // namespace

Result<ModelLayers> read_layers(const Checkpoint& checkpoint, bool allow_unknown) {
  return with_path(read(checkpoint, allow_unknown), checkpoint);
}

Result<FusedLayers> read_fused_layers(const Checkpoint& checkpoint, bool allow_unknown) {
  FusedLayers fused;
  ExpertCounts counts;
  GEARSHIFT_TRY(fused.model, with_path(read(checkpoint, allow_unknown, &counts), checkpoint));
  if (!fused.model.unknown.empty() && !counts.empty()) {
    // What is refused is listed module by module.
    counts.clear();
    GEARSHIFT_TRY(fused.model, read_layers(checkpoint, allow_unknown));
  }
  fused.linear_layers = static_cast<int64_t>(fused.model.layers.size());
  fused.rows = fuse(fused.model.layers);
  for (LayerSpec& row : fused.rows) {
    const auto count = row.kind == LayerKind::experts && !row.stacked ? counts.find(parent(row.name)) : counts.end();
    if (count == counts.end()) continue;
    fused.linear_layers += static_cast<int64_t>(row.modules.size()) * (count->second - 1);
    count_in(count->second, row);
  }
  return fused;
}

}  // namespace gearshift
