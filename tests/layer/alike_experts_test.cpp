#include "layer/alike_experts.h"

#include <gtest/gtest.h>

namespace gearshift {
namespace {

bool alike(const std::string& text) { return treats_experts_alike(parse_json(text, "test").value()); }
bool rule_is_alike(const std::string& rule) { return alike(R"({"ignore": [")" + rule + R"("]})"); }

TEST(AlikeExperts, RulesThatNameNoExpert) {
  for (const char* rule : {"lm_head", "re:.*self_attn.*", "model.layers.3.mlp.gate", "re:.*layers\\\\.(0|1)\\\\..*",
                           "re:.*mlp\\\\.experts.*", "*.experts.*.down_proj", "model.layers.10.mlp.experts", "Linear",
                           "re:model\\\\.layers\\\\.[0-4]\\\\.mlp\\\\..*", "model.visual.blocks.1.attn", "linear_fc1"})
    EXPECT_TRUE(rule_is_alike(rule)) << rule;
  EXPECT_TRUE(alike(R"({"quant_method": "fp8", "fmt": "e4m3", "bits": 4, "group_size": 128, "version": "0.12.3"})"));
  EXPECT_TRUE(alike("{}"));
}

TEST(AlikeExperts, RulesThatMight) {
  for (const char* rule :
       {"model.layers.3.mlp.experts.17.up_proj", "re:.*experts\\\\.[0-3]\\\\..*", "re:.*\\\\.17\\\\..*",
        "re:.*experts\\\\.\\\\d+\\\\..*", "re:.*experts\\\\..\\\\..*", "17.up_proj", "re:.*experts\\\\.(0|1)\\\\..*",
        "re:.*\\\\d.*", "*.experts.?.up_proj", "re:experts.{1,2}up"})
    EXPECT_FALSE(rule_is_alike(rule)) << rule;
  EXPECT_FALSE(alike(R"({"layers": {"a": {"model.layers.0.mlp.experts.0.w1": "NVFP4"}}})"));
}

}  // namespace
}  // namespace gearshift
