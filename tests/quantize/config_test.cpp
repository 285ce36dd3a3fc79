#include "quantize/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"

namespace gearshift::quantize_detail {
namespace {

TEST(Config, MemberIsAddedAndTheRestKeepsItsText) {
  const struct {
    const char *before, *after;
  } cases[] = {
      {"", "{\n  \"quantization_config\": 1\n}"},
      {"{}", "{\n  \"quantization_config\": 1\n}"},
      {"{ \n }\n", "{\n  \"quantization_config\": 1\n}\n"},
      {"{\n  \"rope_theta\": 10000.0,\n  \"z\": [1e-12, \"}\"]\n}\n",
       "{\n  \"rope_theta\": 10000.0,\n  \"z\": [1e-12, \"}\"],\n  \"quantization_config\": 1\n}\n"},
      {"{\"a\": 1, \"quantization_config\": null, \"b\": 2}", "{\"a\": 1, \"b\": 2,\n  \"quantization_config\": 1\n}"},
      {"{\"quantization_config\": {\"x\": [\"}\"]}, \"b\": 2}", "{ \"b\": 2,\n  \"quantization_config\": 1\n}"},
      {"{\"a\": \"quantization_config\", \"quantization_config\": null}",
       "{\"a\": \"quantization_config\",\n  \"quantization_config\": 1\n}"},
      {"{\"quantization_config\": null}", "{\n  \"quantization_config\": 1\n}"},
      {R"({"text_config": {"quantization_config": null}, "q\"": "\\"})",
       "{\"text_config\": {\"quantization_config\": null}, \"q\\\"\": \"\\\\\",\n  \"quantization_config\": 1\n}"},
  };
  for (const auto& c : cases) {
    const auto text = with_quantization_config(c.before, "1");
    ASSERT_TRUE(text.ok()) << c.before;
    EXPECT_EQ(*text, c.after);
    EXPECT_EQ(nlohmann::json::parse(*text)["quantization_config"], 1);
  }
  EXPECT_FALSE(with_quantization_config("[]", "1").ok());
}

TEST(Config, GlobBecomesARegexThatMatchesTheSame) {
  const std::vector<std::string> globs = {"*", "a.b", "*.b", "a.*", "a*b", "*a*", "layer.1.*.x", "a+b", "a.b*c*"};
  const std::vector<std::string> names = {
      "", "a", "a.b", "axb", "a.b.c", "x.a.b", "layer.1.y.x", "layer.11.y.x", "layer.1.y.xx", "a+b", "aab", "aXbXc"};
  for (const std::string& glob : globs) {
    const std::string pattern = glob_to_regex(glob);
    ASSERT_TRUE(pattern.starts_with("re:"));
    const auto regex = Regex::compile(pattern.substr(3), "test");
    ASSERT_TRUE(regex.ok()) << pattern;
    for (const std::string& name : names)
      EXPECT_EQ(regex->match_start(name), glob_match(glob, name)) << glob << " on " << name;
  }
}

TEST(Config, StringsAreEscaped) { EXPECT_EQ(json_string("a\"\\\n"), R"("a\"\\\n")"); }

}  // namespace
}  // namespace gearshift::quantize_detail
