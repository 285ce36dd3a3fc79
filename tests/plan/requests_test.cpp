#include "plan/requests.h"

#include <gtest/gtest.h>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

LayerSpec named(std::string name, std::vector<std::string> parts = {}) {
  LayerSpec layer = layer_of(std::move(name), nvfp4_scheme(), 64, 64);
  layer.parts = std::move(parts);
  return layer;
}

std::string backend_for(const Policy& policy, const LayerSpec& layer) {
  const std::vector<RequestRule> rules = request_rules(policy);
  return rules.at(request_for(rules, layer)).backend;
}

TEST(Requests, LayerOverFamilyOverGlobal) {
  Policy policy = prefer("global");
  EXPECT_EQ(backend_for(policy, named("a.b")), "global");
  policy.linear.families[Family::nvfp4_w4a4] = "family";
  EXPECT_EQ(backend_for(policy, named("a.b")), "family");
  policy.layers = {{"a.*", "pattern"}};
  EXPECT_EQ(backend_for(policy, named("a.b")), "pattern");
  EXPECT_EQ(backend_for(policy, named("c.b")), "family");
  policy.layers.emplace_back("*", "auto");
  EXPECT_EQ(backend_for(policy, named("c.b")), "auto") << "auto is an answer like others";
}

TEST(Requests, MostLiteralCharactersThenTheLaterOne) {
  Policy policy;
  policy.layers = {{"*.mlp.down_proj", "long"}, {"*.mlp.*", "short"}, {"*.x.*", "first"}, {"*.*.x", "second"}};
  EXPECT_EQ(backend_for(policy, named("l.mlp.down_proj")), "long");
  EXPECT_EQ(backend_for(policy, named("l.mlp.up_proj")), "short");
  EXPECT_EQ(backend_for(policy, named("l.x.x")), "second");
  std::reverse(policy.layers.begin(), policy.layers.end());
  EXPECT_EQ(backend_for(policy, named("l.mlp.down_proj")), "long");
  EXPECT_EQ(backend_for(policy, named("l.x.x")), "first");
}

TEST(Requests, PatternsMatchRowsAndParts) {
  Policy policy;
  policy.layers = {{"*q_proj", "by_part"}};
  EXPECT_EQ(backend_for(policy, named("m.qkv_proj", {"m.q_proj", "m.k_proj"})), "by_part");
  EXPECT_EQ(backend_for(policy, named("m.qkv_proj")), "auto");
}

TEST(Requests, ExpertsHaveTheirOwnOption) {
  Policy policy = prefer("dense");
  policy.moe.global = "moe";
  policy.moe.families[Family::nvfp4_w4a4] = "moe_family";
  LayerSpec experts = named("m.experts.gate_up_proj");
  experts.kind = LayerKind::experts;
  EXPECT_EQ(backend_for(policy, experts), "moe_family");
  EXPECT_EQ(backend_for(policy, named("m.o_proj")), "dense");
  policy.layers = {{"*experts*", "pattern"}};
  EXPECT_EQ(backend_for(policy, experts), "pattern") << "patterns speak of both kinds";
}

TEST(Requests, OptionsAsTheUserWroteThem) {
  Policy policy = prefer("a");
  policy.linear.families[Family::fp8_w8a8] = "b";
  policy.moe.global = "c";
  policy.layers = {{"*x", "d"}};
  std::vector<std::string> options;
  for (const RequestRule& rule : request_rules(policy)) options.push_back(rule.option());
  EXPECT_EQ(options, (std::vector<std::string>{"--layer *x=d", "--linear-backend fp8_w8a8=b", "--linear-backend a",
                                               "--moe-backend c"}));
}

}  // namespace
}  // namespace gearshift
