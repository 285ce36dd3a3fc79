// How long does it take to plan a model of 1,000 decoder layers (7,000 linear layers, 23,000 tensors) from its header alone?
//
// The checkpoint ends right after its header, as when only the header of a remote file has been fetched. The floor is
// reading the header once, measured in the same run.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "gearshift/pipeline.h"

namespace {

constexpr int kLayers = 1000;

struct HeaderWriter {
  std::string text = "{";
  uint64_t offset = 0;

  void tensor(const std::string& name, const char* dtype, const std::string& shape, uint64_t bytes) {
    if (text.size() > 1) text += ',';
    text += '"' + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(offset) + ',' +
            std::to_string(offset + bytes) + "]}";
    offset += bytes;
  }
  void nvfp4(const std::string& module, int n, int k) {
    const std::string rows = std::to_string(n);
    tensor(module + ".weight_packed", "U8", rows + ',' + std::to_string(k / 2), uint64_t(n) * k / 2);
    tensor(module + ".weight_scale", "F8_E4M3", rows + ',' + std::to_string(k / 16), uint64_t(n) * k / 16);
    tensor(module + ".weight_global_scale", "F32", "1", 4);
    tensor(module + ".input_global_scale", "F32", "1", 4);
  }
};

// A temporary checkpoint directory, removed at the end.
class StubModel {
 public:
  StubModel() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gearshift-bench-XXXXXX").string();
    if (!mkdtemp(pattern.data())) std::abort();
    path_ = pattern;
    HeaderWriter header;
    for (int i = 0; i < kLayers; ++i) {
      const std::string layer = "model.layers." + std::to_string(i);
      for (const char* name : {"q_proj", "o_proj"}) header.nvfp4(layer + ".self_attn." + name, 4096, 4096);
      for (const char* name : {"k_proj", "v_proj"}) header.nvfp4(layer + ".self_attn." + name, 1024, 4096);
      for (const char* name : {"gate_proj", "up_proj"}) header.nvfp4(layer + ".mlp." + name, 14336, 4096);
      header.nvfp4(layer + ".mlp.down_proj", 4096, 14336);
    }
    header.text += '}';
    header.text.resize((header.text.size() + 7) / 8 * 8, ' ');
    std::ofstream file(path_ / "model.safetensors", std::ios::binary);
    const uint64_t length = header.text.size();
    file.write(reinterpret_cast<const char*>(&length), sizeof length);
    file << header.text;
    std::ofstream(path_ / "config.json")
        << R"({"architectures":["LlamaForCausalLM"],"torch_dtype":"bfloat16","quantization_config":{
               "quant_method":"compressed-tensors","format":"nvfp4-pack-quantized","ignore":[],"config_groups":{"group_0":{
               "targets":["Linear"],
               "weights":{"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16,"symmetric":true,"dynamic":false},
               "input_activations":{"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16,"symmetric":true,"dynamic":"local"}}}}})";
  }
  ~StubModel() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::string header_file() const { return (path_ / "model.safetensors").string(); }

 private:
  std::filesystem::path path_;
};

const StubModel& model() {
  static const StubModel instance;
  return instance;
}

void read_header_once(benchmark::State& state) {
  for (auto _ : state) {
    std::ifstream file(model().header_file(), std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(file), {});
    benchmark::DoNotOptimize(text.data());
  }
}
BENCHMARK(read_header_once)->Unit(benchmark::kMillisecond);

void plan_1000_layers(benchmark::State& state) {
  for (auto _ : state) {
    auto plan = gearshift::plan_model(model().path(), {});
    if (!plan) return state.SkipWithError(plan.error().message().c_str());
    benchmark::DoNotOptimize(plan->layers.data());
    state.counters["rows"] = static_cast<double>(plan->layers.size());
  }
}
BENCHMARK(plan_1000_layers)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
