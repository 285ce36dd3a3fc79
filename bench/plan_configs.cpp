// How long does one plan take, from the words of a command to its JSON, for the example configurations that state their
// architecture, on every known device, with each registry? The budget is 50 ms; `of_budget` is the share of it that the
// slowest plan takes, which the label names.
//
// A command reads the registry of vLLM once; that is measured in the same run and is not in the times of its plans.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gearshift/pipeline.h"
#include "report/documents.h"

namespace {

using namespace gearshift;

constexpr double kBudgetMs = 50;

const std::filesystem::path kSources = GEARSHIFT_SOURCE_DIR;

std::vector<std::string> configurations() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kSources / "tests" / "data" / "configs")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") && !name.ends_with(".expect.json") && !name.ends_with("quant_config.json"))
      paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// A name for each, as --device takes it.
std::vector<std::string> devices() {
  std::vector<std::string> names;
  for (const DeviceProfile& device : known_devices(host_cpu().value()))
    names.push_back(device.aliases.empty() ? device.arch : device.aliases.front());
  return names;
}

Options options_of(const std::string& registry, const std::string& device) {
  return {{"registry", {{registry}, "command line", ""}}, {"device", {{device}, "command line", ""}}};
}

void read_registry_of_vllm(benchmark::State& state) {
  std::ifstream file(kSources / "data" / "vllm.json", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (auto _ : state) benchmark::DoNotOptimize(read_registry(text, "data/vllm.json").value().lists.size());
}
BENCHMARK(read_registry_of_vllm)->Unit(benchmark::kMillisecond);

void plan_configs(benchmark::State& state, const std::string& registry) {
  double slowest_ms = 0;
  std::string slowest;
  int64_t plans = 0, refused = 0;
  const std::vector<std::string> configs = configurations(), names = devices();
  for (auto _ : state) {
    for (const std::string& config : configs) {
      for (const std::string& device : names) {
        const auto start = std::chrono::steady_clock::now();
        const auto plan = plan_model(config, options_of(registry, device));
        if (plan.ok()) benchmark::DoNotOptimize(plan_json(*plan).size());
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
        if (took.count() > slowest_ms) {
          slowest_ms = took.count();
          slowest = std::filesystem::path(config).stem().string() + " on " + device;
        }
        ++(plan.ok() ? plans : refused);
      }
    }
  }
  state.SetLabel(slowest);
  state.counters["slowest_ms"] = slowest_ms;
  state.counters["of_budget"] = slowest_ms / kBudgetMs;
  state.counters["plans"] = static_cast<double>(plans) / static_cast<double>(state.iterations());
  state.counters["refused"] = static_cast<double>(refused) / static_cast<double>(state.iterations());
}
BENCHMARK_CAPTURE(plan_configs, gearshift, std::string("gearshift"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_configs, vllm, std::string("vllm"))->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
