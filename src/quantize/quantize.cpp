// The walk: open, decide per module, scan ranges, code module by module into shards, write the config, publish.
#include "gearshift/quantize.h"

#include <filesystem>
#include <unordered_map>

#include "base/text.h"
#include "base/try.h"
#include "quantize/activations.h"
#include "quantize/config.h"
#include "quantize/matrix.h"
#include "quantize/modelopt_config.h"
#include "quantize/shards.h"
#include "quantize/staging.h"
#include "quantize/widen.h"

namespace gearshift {
namespace {

using namespace quantize_detail;

const StoredTensor* weight_of(const LayerSpec& layer) {
  for (const StoredTensor& tensor : layer.modules.at(0).tensors) {
    if (tensor.role == TensorRole::weight) return &tensor;
  }
  return nullptr;
}

// The source, with what is decided about each of its linear modules.
struct Job {
  const Checkpoint& model;
  std::vector<LayerSpec> layers;  // unfused
  std::vector<Assignment> assignments;
  std::vector<size_t> rows;  // fused row of each layer
  std::vector<std::string> row_names;
  std::vector<ModuleFacts> facts;
  std::unordered_map<std::string, size_t> by_weight;  // name of a weight to be quantized -> layer
};

Result<std::vector<LayerSpec>> float_layers(const Checkpoint& model, const std::string& path) {
  GEARSHIFT_TRY(ModelLayers read, read_layers(model));
  for (const LayerSpec& layer : read.layers) {
    if (layer.scheme.quantized) {
      return ErrorInfo{ErrorCode::usage,
                       path,
                       layer.name + " is quantized already",
                       "a float checkpoint",
                       "start from the model as it was published in bf16, fp16 or fp32",
                       {}};
    }
  }
  if (!read.quant_method.empty()) {
    return ErrorInfo{ErrorCode::usage,     path, "a config that says quant_method " + read.quant_method,
                     "a float checkpoint", "",   {}};
  }
  if (model.tensors().empty() || read.layers.empty()) {
    return ErrorInfo{ErrorCode::usage,
                     path,
                     model.tensors().empty() ? "no weights" : "no linear layers",
                     model.tensors().empty() ? "a float checkpoint in safetensors" : "a model that has linear layers",
                     "",
                     {}};
  }
  return std::move(read.layers);
}

// Which layers serving engines run as one. Experts: gate and up of the same expert, not of its neighbours.
void find_rows(Job& job) {
  std::unordered_map<std::string, size_t> index;
  for (size_t i = 0; i < job.layers.size(); ++i) index[job.layers[i].name] = i;
  job.rows.assign(job.layers.size(), 0);
  for (const LayerSpec& row : fuse(job.layers)) {
    const size_t experts =
        row.kind == LayerKind::experts && !row.stacked ? static_cast<size_t>(std::max<int64_t>(row.experts, 1)) : 1;
    const size_t parts = std::max<size_t>(row.modules.size() / experts, 1);
    for (size_t m = 0; m < row.modules.size(); ++m) {
      if (m % parts == 0) job.row_names.push_back(experts == 1 ? row.name : row.modules[m].name);
      if (const auto at = index.find(row.modules[m].name); at != index.end())
        job.rows[at->second] = job.row_names.size() - 1;
    }
  }
}

// Ranges of all weights to be quantized; parts of a row that get the same preset share the largest.
Result<void> scan_weights(Job& job, const std::function<void(size_t)>& step) {
  job.facts.resize(job.layers.size());
  std::unordered_map<std::string, float> shared;
  const auto key = [&](size_t i) { return std::to_string(job.rows[i]) + std::string(job.assignments[i].preset->name); };
  for (size_t i = 0; i < job.layers.size(); ++i) {
    if (job.assignments[i].preset->recipe == nullptr) continue;
    const LayerSpec& layer = job.layers[i];
    const StoredTensor* weight = weight_of(layer);
    const TensorInfo* tensor = weight == nullptr ? nullptr : job.model.find(weight->name);
    if (tensor == nullptr || tensor->shape != Shape{layer.n, layer.k}) {
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       layer.name,
                       tensor == nullptr ? "no weight" : "shape " + to_string(tensor->shape),
                       "a matrix " + to_string(Shape{layer.n, layer.k}),
                       "",
                       {}};
    }
    if (!is_float16_or_32(tensor->dtype)) {
      return ErrorInfo{ErrorCode::usage,
                       tensor->name,
                       std::string(name(tensor->dtype)),
                       "F32, F16 or BF16",
                       "leave it float with --scheme '" + layer.name + "=UNQUANTIZED'",
                       {}};
    }
    GEARSHIFT_TRY(const ByteView bytes, job.model.bytes(*tensor));
    GEARSHIFT_TRY(const float amax, finite_amax(tensor->name, tensor->dtype, tensor->shape, bytes));
    job.facts[i] = {layer.n, layer.k, tensor->dtype, amax, amax, assumed_amax};
    float& most = shared[key(i)];
    most = std::max(most, amax);
    job.by_weight[tensor->name] = i;
    step(i);
  }
  for (size_t i = 0; i < job.layers.size(); ++i) {
    if (job.assignments[i].preset->recipe != nullptr) job.facts[i].shared_amax = shared[key(i)];
  }
  return {};
}

Result<QuantizedLayer> write_layer(const Job& job, size_t i, const TensorInfo& weight, ShardWriter& shards) {
  const Preset& preset = *job.assignments[i].preset;
  const ModuleFacts& facts = job.facts[i];
  GEARSHIFT_TRY(const ByteView bytes, job.model.bytes(weight));
  QuantizedLayer result;
  result.name = job.layers[i].name;
  result.scheme = preset.name;
  result.n = facts.n;
  result.k = facts.k;
  result.bytes_before = bytes.size();
  std::vector<ShardWriter::Made> made;
  std::vector<uint8_t*> out;
  for (OutTensor& tensor : preset.recipe->tensors(facts)) {
    int64_t size = bits(tensor.dtype) / 8;
    for (int64_t extent : tensor.shape) size *= extent;
    made.push_back({result.name + "." + std::string(tensor.suffix), tensor.dtype, std::move(tensor.shape),
                    std::vector<uint8_t>(static_cast<size_t>(size))});
    out.push_back(made.back().bytes.data());
    result.bytes_after += static_cast<uint64_t>(size);
  }
  const WeightError error = encode_matrix(*preset.recipe, facts, bytes, out);
  result.relative_error = error.relative;
  result.cosine = error.cosine;
  result.worst_row = error.worst_row;
  GEARSHIFT_CHECK(shards.add(std::move(made)));
  return result;
}

// A model of which nothing is quantized keeps its config as it is.
Result<void> write_config(const Job& job, const std::vector<QuantizeRule>& rules, Container container,
                          const std::string& directory) {
  std::string config = job.model.side_file("config.json");
  if (!job.by_weight.empty()) {
    const bool modelopt = container == Container::modelopt;
    GEARSHIFT_TRY(config,
                  with_quantization_config(config, modelopt ? modelopt_quantization_config(job.layers, job.assignments)
                                                            : quantization_config(job.layers, job.assignments, rules)));
    if (modelopt) {
      GEARSHIFT_CHECK(
          write_text(directory + "/hf_quant_config.json", modelopt_hf_quant_config(job.layers, job.assignments)));
    }
  }
  return write_text(directory + "/config.json", config);
}

}  // namespace

Result<QuantizeReport> quantize(const QuantizeRequest& request) {
  GEARSHIFT_TRY(const Container container, find_container(request.container));
  GEARSHIFT_TRY(const Checkpoint model, Checkpoint::open(request.model));
  Job job{model, {}, {}, {}, {}, {}, {}};
  GEARSHIFT_TRY(job.layers, float_layers(model, request.model));
  GEARSHIFT_TRY(RuleResult rules, apply_rules(job.layers, request.rules, container));
  job.assignments = std::move(rules.modules);
  find_rows(job);

  QuantizeReport report;
  report.out = request.out;
  report.notes = std::move(rules.notes);
  GEARSHIFT_TRY(InputRanges inputs,
                input_ranges(request.calibration, job.layers, job.assignments, job.rows, job.row_names));
  report.notes.insert(report.notes.end(), inputs.notes.begin(), inputs.notes.end());
  GEARSHIFT_TRY(StagedDirectory staged, StagedDirectory::create(request.out));

  size_t total = 0, done = 0;
  for (const Assignment& a : job.assignments) total += a.preset->recipe != nullptr ? 2 : 0;
  const auto step = [&](size_t) {
    if (request.progress) request.progress(++done, total);
  };
  GEARSHIFT_CHECK(scan_weights(job, step));
  for (size_t i = 0; i < job.layers.size(); ++i) job.facts[i].input_amax = inputs.amax[i];

  ShardWriter shards(staged.path());
  for (const TensorInfo& tensor : model.tensors()) {
    const auto layer = job.by_weight.find(tensor.name);
    if (layer == job.by_weight.end()) {
      GEARSHIFT_TRY(const ByteView bytes, model.bytes(tensor));
      GEARSHIFT_CHECK(shards.add(tensor, bytes));
      continue;
    }
    GEARSHIFT_TRY(QuantizedLayer written, write_layer(job, layer->second, tensor, shards));
    report.layers.push_back(std::move(written));
    step(layer->second);
  }
  GEARSHIFT_CHECK(shards.finish());

  GEARSHIFT_CHECK(write_config(job, request.rules, container, staged.path()));
  std::error_code code;
  if (std::filesystem::is_directory(request.model, code))
    GEARSHIFT_CHECK(copy_side_files(request.model, staged.path()));
  GEARSHIFT_CHECK(staged.commit());
  return report;
}

}  // namespace gearshift
