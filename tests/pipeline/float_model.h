// A checkpoint of a few bf16 layers on disk, and kernels made from the reference.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <random>

#include "kernel/reference/reference.h"
#include "measure/activations.h"
#include "pipeline/session.h"

namespace gearshift {

class FloatModel : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/float_model_" + testing::UnitTest::GetInstance()->current_test_info()->name() +
              "_" + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write_model({{"model.layers.0.mlp.down_proj", 24},
                 {"model.layers.1.mlp.down_proj", 24},
                 {"model.layers.0.self_attn.o_proj", 40}});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Layers by name and rows; those of equal rows are one class.
  void write_model(const std::vector<std::pair<std::string, int64_t>>& layers, int64_t columns = k) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<TensorToWrite> tensors;
    std::deque<std::vector<uint8_t>> bytes;
    for (const auto& [name, n] : layers) {
      std::vector<uint8_t>& weight = bytes.emplace_back(static_cast<size_t>(n * columns * 2));
      for (int64_t i = 0; i < n * columns; ++i) store_element(weight.data(), DType::bf16, i, normal(random));
      tensors.push_back({name + ".weight", DType::bf16, {n, columns}, weight});
    }
    ASSERT_TRUE(write_safetensors(model(), tensors).ok());
  }
  std::string model() const { return file("model.safetensors"); }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  Options options(std::map<std::string, std::string> more = {}) const {
    Options options;
    more.emplace("batch", "1,16,64");
    more.emplace("threads", "1");
    more.emplace("store", file("store.sqlite"));
    for (const auto& [name, value] : more) options[name] = {{value}, "call", ""};
    return options;
  }

  static constexpr int64_t k = 64;
  std::string folder_;
};

// Copies of the reference under other names; `run` may be replaced.
class CopiedKernels {
 public:
  Kernel& add(std::string name, std::string backend = "native", void (*run)(const RunArgs&) = nullptr) {
    Kernel& kernel = kernels_.emplace_back(reference_kernel);
    kernel.name = texts_.emplace_back(std::move(name));
    kernel.backend = texts_.emplace_back(std::move(backend));
    if (run != nullptr) kernel.run = run;
    list_.entries.push_back({&kernel, 1, 0, "a test"});
    registry_.lists = {list_};
    return kernel;
  }
  // Changes the list line of the kernel added last.
  void prefer(int64_t m_min, int64_t m_max) {
    list_.entries.back().m_min = m_min;
    list_.entries.back().m_max = m_max;
    registry_.lists = {list_};
  }
  const Registry& registry() const { return registry_; }

 private:
  std::deque<Kernel> kernels_;
  std::deque<std::string> texts_;
  KernelList list_;
  Registry registry_{"test", {}};
};

}  // namespace gearshift
