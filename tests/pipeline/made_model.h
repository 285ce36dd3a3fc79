// Small checkpoints written by tests, run with given activations.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "kernel/reference/reference.h"
#include "pipeline/runner.h"
#include "pipeline/verifier.h"

namespace gearshift {

template <class T>
std::vector<uint8_t> bytes_of_values(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct MadeTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::vector<uint8_t> bytes;
};
inline Result<void> write_made(const std::string& path, const std::vector<MadeTensor>& tensors) {
  std::vector<TensorToWrite> views;
  for (const MadeTensor& tensor : tensors) views.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  return write_safetensors(path, views);
}

// A directory of its own for each test: config.json, model.safetensors, and the files of one run.
class MadeModel : public testing::Test {
 protected:
  void SetUp() override {
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    directory_ = testing::TempDir() + "/" + test.test_suite_name() + "_" + test.name();
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& config, const std::vector<MadeTensor>& tensors) const {
    std::ofstream(directory_ + "/config.json") << config;
    ASSERT_TRUE(write_made(directory_ + "/model.safetensors", tensors).ok());
  }
  Options options(const std::string& batch) const {
    return {{"batch", {{batch}, "call"}}, {"threads", {{"2"}, "call"}}, {"dtype", {{"fp32"}, "call"}}};
  }
  Result<RunReport> run(const Options& options, const Registry& registry = builtin_registry()) const {
    auto session = Session::open(directory_, options);
    if (!session.ok()) return session.error();
    return Runner(*session, registry, nullptr).run();
  }
  Result<VerifyReport> verify(const Options& options, const Registry& registry = builtin_registry()) const {
    auto session = Session::open(directory_, options);
    if (!session.ok()) return session.error();
    return Verifier(*session, registry, nullptr).run();
  }
  // The tensors of --output for these activations, by name.
  struct Outputs {
    RunReport report;
    std::map<std::string, std::vector<float>> y;
  };
  Result<Outputs> run_with(const std::vector<MadeTensor>& inputs, const Registry& registry = builtin_registry(),
                           Options more = {}) const {
    const std::string in = directory_ + "/in.safetensors", out = directory_ + "/out.safetensors";
    if (auto written = write_made(in, inputs); !written.ok()) return written.error();
    more.merge(options(""));
    more.erase("batch");
    more["input"] = {{in}, "call"};
    more["output"] = {{out}, "call"};
    auto report = run(more, registry);
    if (!report.ok()) return report.error();
    const auto file = Checkpoint::open(out);
    if (!file.ok()) return file.error();
    Outputs outputs{*std::move(report), {}};
    for (const TensorInfo& tensor : file->tensors()) {
      const ByteView bytes = *file->bytes(tensor);
      std::vector<float>& y = outputs.y[tensor.name];
      y.resize(bytes.size() / 4);
      std::memcpy(y.data(), bytes.data(), bytes.size());
    }
    return outputs;
  }

  std::string directory_;
};

}  // namespace gearshift
