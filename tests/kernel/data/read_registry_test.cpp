// Registry files: what they say arrives in contracts and rules, and every mistake in one is named with its place.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "gearshift/kernel.h"

namespace gearshift {
namespace {

// The example of docs/registry.md: the first json block there.
std::string documented_example() {
  std::ifstream file(std::filesystem::path(GEARSHIFT_SOURCE_DIR) / "docs" / "registry.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const size_t begin = page.find("```json\n") + 8;
  return page.substr(begin, page.find("```", begin) - begin);
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// The error of the example with one place changed.
ErrorInfo error_of(std::string_view from, std::string_view to) {
  const Result<Registry> registry = read_registry(replaced(documented_example(), from, to), "team.json");
  EXPECT_FALSE(registry.ok()) << to;
  return registry.ok() ? ErrorInfo{} : registry.error();
}

TEST(ReadRegistry, TheDocumentedExampleArrivesWhole) {
  const Registry registry = read_registry(documented_example(), "team.json").value();
  EXPECT_EQ(registry.name, "team");
  EXPECT_EQ(registry.packages, (std::vector<std::string_view>{"fastlib", "fastlib.fp4"}));
  ASSERT_EQ(registry.lists.size(), 2u);
  EXPECT_EQ(registry.lists[0].family, Family::nvfp4_w4a4);
  ASSERT_EQ(registry.lists[0].entries.size(), 2u);
  EXPECT_EQ(registry.lists[0].entries[0].why, "native FP4");
  EXPECT_EQ(registry.rules.linear.not_usable, Unserved::is_refused);
  EXPECT_EQ(registry.rules.linear.not_covered, Unserved::falls_back);
  EXPECT_FALSE(registry.rules.host_stands_in);

  const Kernel& fast = *registry.find_kernel("fast_fp4", Platform::cuda);
  EXPECT_EQ(fast.backend, "fast");
  EXPECT_EQ(fast.platform, Platform::cuda);
  EXPECT_EQ(fast.layout, &engine_layout);
  ASSERT_EQ(fast.contract.capabilities.size(), 2u);
  EXPECT_EQ(fast.contract.capabilities[1].min, 120);
  EXPECT_EQ(fast.contract.capabilities[1].max, 129);
  EXPECT_EQ(fast.contract.k.multiple, 128);
  ASSERT_EQ(fast.contract.where.size(), 1u);
  EXPECT_EQ(fast.contract.where[0].contract.n.multiple, 64);
  ASSERT_EQ(fast.contract.facts.size(), 2u);
  EXPECT_EQ(fast.contract.facts[0].stage, Stage::policy);
  EXPECT_EQ(fast.contract.facts[1].stage, Stage::build);
  EXPECT_EQ(fast.contract.facts[1].kind, FactTest::Kind::at_least);
  EXPECT_EQ(registry.find_kernel("wide_fp4", Platform::cuda)->activation, ActivationUse::float16);
}

// Texts and kernels live in the registry, wherever it is copied to.
TEST(ReadRegistry, ACopyKeepsItsKernels) {
  Registry kept;
  {
    const Registry registry = read_registry(documented_example(), "team.json").value();
    kept = registry;
  }
  EXPECT_EQ(kept.find_kernel("plain", Platform::cuda)->name, "plain");
}

TEST(ReadRegistry, MistakesAreNamedWithTheirPlace) {
  const struct {
    const char *from, *to, *subject, *found, *hint;
  } mistakes[] = {
      {"gearshift.registry/1", "gearshift.registry/9", "team.json: schema", "'gearshift.registry/9'", ""},
      {"\"multiple\": 128", "\"multipel\": 128", "team.json: kernels.fast_fp4.contract.k", "'multipel'", "multiple"},
      {"\"multiple\": 128", "\"multiple\": 0", "team.json: kernels.fast_fp4.contract.k.multiple", "the number 0", ""},
      {"\"multiple\": 128", "\"multiple\": \"128\"", "team.json: kernels.fast_fp4.contract.k.multiple", "'128'", ""},
      {"\"12x\"],", "\"12y\"],", "team.json: kernels.fast_fp4.contract.capabilities[1]", "'12y'", ""},
      {"\"fastlib.fp4\"]", "\"fastlib.fp8\"]", "team.json: kernels.fast_fp4.contract.packages", "'fastlib.fp8'",
       "fastlib.fp4"},
      {"{\"FAST_OFF\": \"0\",", "{\"FAST_OF\": \"0\",", "team.json: kernels.fast_fp4.contract.facts.FAST_OF",
       "'FAST_OF'", "FAST_OFF"},
      {"\"nvfp4_w4a4\"", "\"nvfp4\"", "team.json: lists[0].families[0]", "'nvfp4'", "nvfp4_w4a4"},
      {"\"platforms\": [\"cuda\"]", "\"platforms\": [\"cude\"]", "team.json: lists[0].platforms[0]", "'cude'", "cuda"},
      {"\"kernel\": \"fast_fp4\"", "\"kernel\": \"fast_fp8\"", "team.json: lists[0].kernels[0]", "'fast_fp8'",
       "fast_fp4"},
      {", \"wide_fp4\"]", "]", "team.json: kernels.wide_fp4", "in no list", ""},
      {", \"wide_fp4\"]", ", \"wide_fp4\", \"wide_fp4\"]", "team.json: lists[0]", "wide_fp4 twice", ""},
      {"\"float16\"", "\"float61\"", "team.json: kernels.wide_fp4.activation", "'float61'", "float16"},
      {"\"is_refused\"", "\"is_refusd\"", "team.json: rules.linear.not_usable", "'is_refusd'", "is_refused"},
      {"\"name\": \"team\"", "\"name\": \"\"", "team.json: name", "''", ""},
      {"\"when\": {\"capabilities\": [\"12x\"]}, ", "", "team.json: kernels.fast_fp4.contract.where[0]", "no `when`",
       ""},
  };
  for (const auto& mistake : mistakes) {
    const ErrorInfo error = error_of(mistake.from, mistake.to);
    EXPECT_EQ(error.code, ErrorCode::usage) << mistake.to;
    EXPECT_EQ(error.subject, mistake.subject) << error.message();
    EXPECT_EQ(error.found, mistake.found) << error.message();
    EXPECT_FALSE(error.wanted.empty()) << error.message();
    EXPECT_NE(error.hint.find(mistake.hint), std::string::npos) << error.message();
  }
}

// Whatever is cut off or turned into something else is refused, never read past its end.
TEST(ReadRegistry, EveryTruncationIsAnError) {
  const std::string text = documented_example();
  const size_t whole = text.rfind('}');
  for (size_t length = 0; length < whole; ++length) {
    const Result<Registry> registry = read_registry(text.substr(0, length), "cut.json");
    ASSERT_FALSE(registry.ok()) << length;
    EXPECT_EQ(registry.error().code, ErrorCode::usage);
  }
}

TEST(ReadRegistry, ValuesOfAnotherTypeAreErrors) {
  for (const char* value : {"null", "3", "true", "\"x\"", "[3]", "[[]]", "{\"x\": 3}"}) {
    for (const char* key : {"packages", "default_install", "facts", "rules", "lists", "kernels"}) {
      const std::string text =
          std::string(R"({"schema": "gearshift.registry/1", "name": "n", ")") + key + "\": " + value + "}";
      EXPECT_FALSE(read_registry(text, "t").ok()) << text;
    }
  }
  EXPECT_TRUE(read_registry(R"({"schema": "gearshift.registry/1", "name": "n"})", "t").ok());
}

TEST(ReadRegistry, NestingIsBounded) {
  const std::string deep = R"({"schema": "gearshift.registry/1", "name": "n", "lists": )" + std::string(100'000, '[');
  EXPECT_FALSE(read_registry(deep, "deep").ok());
}

TEST(ReadRegistry, TheRegistryOfVllmIsWhole) {
  const Registry& registry = vllm_registry();
  EXPECT_EQ(registry.name, "vllm");
  EXPECT_EQ(registry.rules.disabling_fact, "VLLM_DISABLED_KERNELS");
  EXPECT_NE(registry.source.find("006fc8985082388efb440afc595045fb4fa04785"), std::string_view::npos);
}

}  // namespace
}  // namespace gearshift
