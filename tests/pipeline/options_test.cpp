#include "pipeline/options.h"

#include <gtest/gtest.h>

namespace gearshift {
namespace {

Options given(const std::vector<std::pair<std::string, std::vector<std::string>>>& options) {
  Options result;
  for (const auto& [name, values] : options) result[name] = {values, "command line", ""};
  return result;
}

TEST(Options, EveryValueHasItsMeaning) {
  const auto settings = read_settings(given({{"device", {"sm_90"}},
                                             {"linear-backend", {"native,fp8_w8a8=cutlass", "bf16=emulation"}},
                                             {"moe-backend", {"marlin"}},
                                             {"strict", {"1"}},
                                             {"disable", {"a*,b", "c"}},
                                             {"batch", {"1,256"}},
                                             {"selection", {"static"}},
                                             {"arithmetic", {"exact"}},
                                             {"layer", {"*.mlp.*=native", "a=b=marlin"}},
                                             {"single-kernel", {"yes"}},
                                             {"dtype", {"fp16"}},
                                             {"threads", {"3"}},
                                             {"no-fuse", {"1"}},
                                             {"layers", {"*q_proj"}},
                                             {"explain", {"x"}},
                                             {"seed", {"42"}},
                                             {"kernel", {"k"}},
                                             {"input", {"in"}},
                                             {"output", {"out"}},
                                             {"scheme", {"NVFP4", "*attn*=FP8_DYNAMIC"}},
                                             {"container", {"modelopt"}},
                                             {"calibration", {"c"}},
                                             {"out", {"dir"}},
                                             {"json", {""}}}));
  ASSERT_TRUE(settings.ok()) << settings.error().message();
  const Policy& policy = settings->policy;
  EXPECT_EQ(settings->device, "sm_90");
  EXPECT_EQ(policy.linear.global, "native");
  EXPECT_EQ(policy.linear.families.at(Family::fp8_w8a8), "cutlass");
  EXPECT_EQ(policy.linear.families.at(Family::bf16), "emulation");
  EXPECT_EQ(policy.moe.global, "marlin");
  EXPECT_TRUE(policy.strict);
  EXPECT_EQ(policy.disable, (std::vector<std::string>{"a*", "b", "c"}));
  EXPECT_EQ(policy.batch, (std::vector<int64_t>{1, 256}));
  EXPECT_EQ(policy.selection, "static");
  EXPECT_EQ(policy.arithmetic, Arithmetic::exact);
  ASSERT_EQ(policy.layers.size(), 2u);
  EXPECT_EQ(policy.layers[1], (std::pair<std::string, std::string>{"a=b", "marlin"}));
  EXPECT_TRUE(policy.single_kernel);
  EXPECT_EQ(settings->dtype, DType::f16);
  EXPECT_EQ(settings->threads, 3);
  EXPECT_FALSE(settings->fuse);
  EXPECT_EQ(settings->seed, 42u);
  EXPECT_EQ(policy.force_kernel, "k");
  ASSERT_EQ(settings->rules.size(), 2u);
  EXPECT_EQ(settings->rules[0].glob, "");
  EXPECT_EQ(settings->rules[1].glob, "*attn*");
  EXPECT_EQ(settings->container, "modelopt");
}

TEST(Options, Defaults) {
  const auto settings = read_settings({});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->policy.batch, (std::vector<int64_t>{1, 8, 16, 64, 256, 1024, 4096}));
  EXPECT_EQ(settings->policy.linear.global, "auto");
  EXPECT_EQ(settings->policy.selection, "measured");
  EXPECT_EQ(settings->policy.arithmetic, Arithmetic::higher);
  EXPECT_TRUE(settings->fuse);
  EXPECT_FALSE(settings->policy.strict);
  EXPECT_FALSE(settings->dtype);
}

TEST(Options, WrongValuesNameTheOption) {
  const std::vector<std::tuple<std::string, std::string, std::string>> wrong = {
      {"batch", "0", "'0'"},
      {"batch", "8,,16", "'8,,16'"},
      {"batch", "8 ", "'8 '"},
      {"batch", "1e3", "'1e3'"},
      {"batch", "99999999999999999999", ""},
      {"threads", "0", "'0'"},
      {"threads", "many", "'many'"},
      {"dtype", "bf61", "bf16"},
      {"arithmetic", "hihger", "higher"},
      {"selection", "", "nothing"},
      {"strict", "maybe", "'maybe'"},
      {"linear-backend", "fp8=marlin", "'fp8'"},
      {"linear-backend", "a,b", "'b'"},
      {"linear-backend", "bf16=", "'bf16='"},
      {"layer", "native", "'native'"},
      {"layer", "=native", "'=native'"},
      {"seed", "-1", "'-1'"},
      {"scheme", "a=", "'a='"},
      {"container", "gguf", "'gguf'"}};
  for (const auto& [option, value, word] : wrong) {
    const auto settings = read_settings(given({{option, {value}}}));
    ASSERT_FALSE(settings.ok()) << option << " " << value;
    EXPECT_EQ(exit_code(settings.error().code), 2);
    EXPECT_EQ(settings.error().subject, "--" + option);
    EXPECT_NE(settings.error().message().find(word), std::string::npos) << settings.error().message();
    EXPECT_FALSE(settings.error().wanted.empty());
  }
  const auto twice = read_settings(given({{"device", {"cpu", "sm_90"}}}));
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().found.find("sm_90"), std::string::npos);
}

TEST(Options, SizesInBytes) {
  const auto budget = [](const char* text) {
    const auto settings = read_settings(given({{"memory-budget", {text}}}));
    return settings.ok() ? static_cast<int64_t>(settings->policy.memory_budget) : -1;
  };
  EXPECT_EQ(budget("0"), 0);
  EXPECT_EQ(budget("1073741824"), 1073741824);
  EXPECT_EQ(budget("512MiB"), 512 << 20);
  EXPECT_EQ(budget("512Mi"), 512 << 20);
  EXPECT_EQ(budget("1.5G"), 1500000000);
  EXPECT_EQ(budget("2kb"), 2000);
  EXPECT_EQ(budget("3TiB"), int64_t{3} << 40);
  for (const char* wrong : {"", "-1", "G", "1i", "1iB", "1.2.3", "nan", "inf", "1e99", "1 G", "0x10"})
    EXPECT_EQ(budget(wrong), -1) << wrong;
}

TEST(Options, TensorParallelDegrees) {
  EXPECT_EQ(read_settings(given({{"tp", {"8"}}}))->policy.tp, 8);
  EXPECT_FALSE(read_settings(given({{"tp", {"8"}}}))->tp_auto);
  EXPECT_TRUE(read_settings(given({{"tp", {"auto"}}}))->tp_auto);
  EXPECT_EQ(read_settings(given({{"tp", {"auto"}}}))->policy.tp, 0);
  for (const char* wrong : {"0", "-2", "1025", "Auto ", "2.0", "x"})
    EXPECT_FALSE(read_settings(given({{"tp", {wrong}}})).ok()) << wrong;
}

TEST(Options, UnknownAndUnavailableOnesAreRefused) {
  const auto unknown = read_settings(given({{"linear-backed", {"native"}}}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().hint.find("linear-backend"), std::string::npos) << unknown.error().message();
  for (const OptionSpec& spec : all_options()) {
    if (spec.use != OptionUse::later) continue;
    const auto settings = read_settings(given({{std::string(spec.name), {"1"}}}));
    ASSERT_FALSE(settings.ok()) << spec.name;
    EXPECT_EQ(exit_code(settings.error().code), 2);
    EXPECT_EQ(settings.error().subject, "--" + std::string(spec.name));
  }
}

}  // namespace
}  // namespace gearshift
