#include "pipeline/options.h"

#include <gtest/gtest.h>

namespace gearshift {
namespace {

Options given(const std::vector<std::pair<std::string, std::vector<std::string>>>& options) {
  Options result;
  for (const auto& [name, values] : options) result[name] = {values, "command line"};
  return result;
}

std::function<const char*(const char*)> environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
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

TEST(Options, UnknownAndUnavailableOnesAreRefused) {
  const auto unknown = read_settings(given({{"linear-backed", {"native"}}}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().hint.find("linear-backend"), std::string::npos) << unknown.error().message();
  for (const char* name :
       {"registry", "with", "without", "assume", "plugin", "batch-invariant", "memory-budget", "tp", "lock", "html"}) {
    const auto settings = read_settings(given({{name, {"1"}}}));
    ASSERT_FALSE(settings.ok()) << name;
    EXPECT_EQ(exit_code(settings.error().code), 2);
    EXPECT_EQ(settings.error().subject, std::string("--") + name);
  }
}

TEST(Environment, FillsWhereTheCommandLineIsSilent) {
  const Options options =
      with_environment(given({{"linear-backend", {"native"}}}), environment({{"GEARSHIFT_LINEAR_BACKEND", "marlin"},
                                                                             {"GEARSHIFT_STRICT", "yes"},
                                                                             {"GEARSHIFT_BATCH", ""},
                                                                             {"GEARSHIFT_LAYER", "a=native,b=marlin"},
                                                                             {"GEARSHIFT_NO_FUSE", "true"},
                                                                             {"GEARSHIFT_STORE", "off"}}));
  EXPECT_EQ(options.at("linear-backend").values, (std::vector<std::string>{"native"}));
  EXPECT_EQ(options.at("linear-backend").source, "command line");
  EXPECT_EQ(options.at("strict").source, "environment");
  EXPECT_EQ(options.count("batch"), 0u);
  const auto settings = read_settings(options);
  ASSERT_TRUE(settings.ok()) << settings.error().message();
  EXPECT_TRUE(settings->policy.strict);
  EXPECT_EQ(settings->policy.layers.size(), 2u);
  EXPECT_FALSE(settings->fuse);
}

TEST(Environment, FuseAndNoFuseAreOneOption) {
  const Options options = with_environment(given({{"fuse", {"1"}}}), environment({{"GEARSHIFT_NO_FUSE", "1"}}));
  EXPECT_TRUE(read_settings(options)->fuse);
  EXPECT_FALSE(read_settings(with_environment({}, environment({{"GEARSHIFT_FUSE", "0"}})))->fuse);
}

TEST(Environment, BooleansAndErrorsNameTheVariable) {
  for (const char* word : {"1", "true", "YES"})
    EXPECT_TRUE(read_settings(with_environment({}, environment({{"GEARSHIFT_STRICT", word}})))->policy.strict);
  for (const char* word : {"0", "False", "no"})
    EXPECT_FALSE(read_settings(with_environment({}, environment({{"GEARSHIFT_STRICT", word}})))->policy.strict);
  const auto wrong = read_settings(with_environment({}, environment({{"GEARSHIFT_SINGLE_KERNEL", "on"}})));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().subject, "GEARSHIFT_SINGLE_KERNEL");
  EXPECT_FALSE(read_settings(with_environment({}, environment({{"GEARSHIFT_TP", "2"}}))).ok());
}

TEST(Options, EffectiveOnesShowValueAndSource) {
  const Options effective =
      effective_options(with_environment(given({{"batch", {"4"}}}), environment({{"GEARSHIFT_THREADS", "2"}})));
  EXPECT_EQ(effective.at("batch").source, "command line");
  EXPECT_EQ(effective.at("threads").source, "environment");
  EXPECT_EQ(effective.at("arithmetic").source, "default");
  EXPECT_EQ(effective.at("arithmetic").values, (std::vector<std::string>{"higher"}));
  EXPECT_EQ(effective.count("tp"), 0u);
}

}  // namespace
}  // namespace gearshift
