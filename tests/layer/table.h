// Small checkpoints from a table of tensors: a config.json, and a safetensors file that ends after its header.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gearshift/checkpoint.h"
#include "gearshift/layer.h"

namespace gearshift::test {

struct Row {
  std::string name, dtype;
  Shape shape;
};
using Table = std::vector<Row>;

inline int64_t element_bytes(const std::string& dtype) { return bits(parse_dtype(dtype).value()) / 8; }

// A directory that is removed at the end of its scope.
class TableCheckpoint {
 public:
  // `files`: side files by name; config.json among them.
  TableCheckpoint(const Table& table, const std::vector<std::pair<std::string, std::string>>& files) {
    static std::atomic<int> count{0};
    dir_ = std::filesystem::temp_directory_path() /
           ("gearshift_layer_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(dir_);
    for (const auto& [name, text] : files) std::ofstream(dir_ / name) << text;
    std::string header = "{";
    int64_t offset = 0;
    for (const Row& row : table) {
      int64_t size = element_bytes(row.dtype);
      std::string shape;
      for (int64_t d : row.shape) {
        size *= d;
        shape += (shape.empty() ? "" : ",") + std::to_string(d);
      }
      header += (header.size() > 1 ? ",\"" : "\"") + row.name + "\":{\"dtype\":\"" + row.dtype + "\",\"shape\":[" +
                shape + "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(offset + size) + "]}";
      offset += size;
    }
    header += "}";
    while (header.size() % 8 != 0) header += ' ';
    std::ofstream file(dir_ / "model.safetensors", std::ios::binary);
    const uint64_t length = header.size();
    for (int i = 0; i < 8; ++i) file.put(static_cast<char>(length >> (8 * i)));
    file << header;
  }
  ~TableCheckpoint() {
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }
  TableCheckpoint(const TableCheckpoint&) = delete;
  TableCheckpoint& operator=(const TableCheckpoint&) = delete;

  Result<ModelLayers> read(bool allow_unknown = false) const {
    Result<Checkpoint> checkpoint = Checkpoint::open(dir_.string());
    if (!checkpoint.ok()) return checkpoint.error();
    return read_layers(*checkpoint, allow_unknown);
  }

 private:
  std::filesystem::path dir_;
};

// Reads a table under a config.json.
inline Result<ModelLayers> read_table(const Table& table, const std::string& config, bool allow_unknown = false) {
  return TableCheckpoint(table, {{"config.json", config}}).read(allow_unknown);
}

inline void add(Table* table, Table more) { table->insert(table->end(), more.begin(), more.end()); }

// ---- tensors of one module, as its writers store them ----
inline Table bf16(const std::string& module, int64_t n, int64_t k) { return {{module + ".weight", "BF16", {n, k}}}; }
inline Table fp8_channel(const std::string& m, int64_t n, int64_t k) {
  return {{m + ".weight", "F8_E4M3", {n, k}}, {m + ".weight_scale", "BF16", {n, 1}}};
}
inline Table nvfp4_ct(const std::string& m, int64_t n, int64_t k, bool activations = true) {
  Table table = {{m + ".weight_packed", "U8", {n, k / 2}},
                 {m + ".weight_scale", "F8_E4M3", {n, k / 16}},
                 {m + ".weight_global_scale", "F32", {1}}};
  if (activations) table.push_back({m + ".input_global_scale", "F32", {1}});
  return table;
}
inline Table nvfp4_modelopt(const std::string& m, int64_t n, int64_t k, bool activations = true) {
  Table table = {{m + ".weight", "U8", {n, k / 2}},
                 {m + ".weight_scale", "F8_E4M3", {n, k / 16}},
                 {m + ".weight_scale_2", "F32", {}}};
  if (activations) table.push_back({m + ".input_scale", "F32", {}});
  return table;
}
inline Table fp8_modelopt(const std::string& m, int64_t n, int64_t k) {
  return {{m + ".weight", "F8_E4M3", {n, k}}, {m + ".weight_scale", "F32", {}}, {m + ".input_scale", "F32", {}}};
}
inline Table int_packed(const std::string& m, int64_t n, int64_t k, int64_t bits, int64_t group) {
  return {{m + ".weight_packed", "I32", {n, (k * bits + 31) / 32}},
          {m + ".weight_scale", "BF16", {n, (k + group - 1) / group}},
          {m + ".weight_shape", "I64", {2}}};
}

// ---- configs ----
inline std::string ct_config(const std::string& groups, const std::string& ignore = "[]",
                             const std::string& format = "mixed-precision", const std::string& more = "") {
  return R"({"architectures":["Test"],"quantization_config":{"quant_method":"compressed-tensors","format":")" + format +
         R"(","config_groups":{)" + groups + R"(},"ignore":)" + ignore + "}" + more + "}";
}
inline const std::string kNvfp4Arguments = R"({"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16)";
inline std::string nvfp4_group(const std::string& targets, bool activations = true) {
  return R"({"format":"nvfp4-pack-quantized","targets":)" + targets + R"(,"weights":)" + kNvfp4Arguments +
         R"(,"dynamic":false},"input_activations":)" +
         (activations ? kNvfp4Arguments + R"(,"dynamic":"local"})" : "null") + "}";
}
inline std::string fp8_group(const std::string& targets) {
  return R"({"format":"float-quantized","targets":)" + targets +
         R"(,"weights":{"num_bits":8,"type":"float","strategy":"channel"},"input_activations":{"num_bits":8,"type":"float","strategy":"token","dynamic":true}})";
}
inline std::string modelopt_config(const std::string& more) {
  return R"({"quantization_config":{"quant_method":"modelopt",)" + more + "}}";
}

// ---- asking ----
inline const LayerSpec* find(const std::vector<LayerSpec>& layers, const std::string& name) {
  for (const LayerSpec& layer : layers) {
    if (layer.name == name) return &layer;
  }
  return nullptr;
}
using Names = std::vector<std::string>;
inline Names names(const std::vector<LayerSpec>& layers) {
  Names all;
  for (const LayerSpec& layer : layers) all.push_back(layer.name);
  return all;
}
// "nvfp4_w4a4 64x32", or "none"
inline std::string said(const Result<ModelLayers>& model, const std::string& layer_name) {
  if (!model.ok()) return "error: " + model.error().message();
  const LayerSpec* layer = find(model->layers, layer_name);
  if (layer == nullptr) return "none";
  return std::string(name(layer->family)) + " " + std::to_string(layer->n) + "x" + std::to_string(layer->k);
}
// The message has every one of these parts.
inline ::testing::AssertionResult fails(const Result<ModelLayers>& model, ErrorCode code,
                                        const std::vector<std::string>& parts) {
  if (model.ok()) return ::testing::AssertionFailure() << "no error";
  const std::string message = model.error().message();
  if (model.error().code != code)
    return ::testing::AssertionFailure() << "code " << name(model.error().code) << ": " << message;
  for (const std::string& part : parts) {
    if (message.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "no \"" << part << "\" in: " << message;
  }
  return ::testing::AssertionSuccess();
}

}  // namespace gearshift::test
