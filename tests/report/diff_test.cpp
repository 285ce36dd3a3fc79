#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/documents.h"
#include "report/sample.h"
#include "report/texts.h"
#include "report/widest.h"

namespace gearshift {
namespace {

using Tree = nlohmann::ordered_json;

Result<PlanRecord> parsed(const Tree& document) { return parse_plan_record(document.dump(), "plan.json"); }

TEST(PlanRecord, ADocumentSaysWhatItsPlanSays) {
  const Plan plan = test::sample_plan();
  const PlanRecord direct = record_of(plan);
  const auto read = parse_plan_record(plan_json(plan), "plan.json");
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->layers, direct.layers);
  EXPECT_EQ(read->hash, direct.hash);
  EXPECT_EQ(read->device, direct.device);
  EXPECT_EQ(read->subject, "plan.json");
  EXPECT_EQ(read->layers[0].scheme, "e2m1 g16 x e2m1");
  EXPECT_EQ(read->layers[0].arithmetic, "e2m1 x bf16, fp32 (activation_upgraded)");
  ASSERT_EQ(read->layers[0].ranges.size(), 2u);
  EXPECT_EQ(read->layers[0].ranges[1].m_max, 0);
  EXPECT_EQ(read->layers[0].ranges[1].source, "measured");
}

TEST(PlanRecord, WhatIsNoPlanIsRefusedByPlace) {
  const Tree good = Tree::parse(plan_json(test::sample_plan()));
  ASSERT_TRUE(parsed(good).ok());
  const auto refused = [&](const std::function<void(Tree&)>& change, const std::string& place) {
    Tree bad = good;
    change(bad);
    const auto record = parsed(bad);
    ASSERT_FALSE(record.ok()) << place;
    EXPECT_EQ(exit_code(record.error().code), 2);
    EXPECT_NE(record.error().subject.find("plan.json"), std::string::npos);
    EXPECT_NE(record.error().message().find(place), std::string::npos) << record.error().message();
  };
  refused([](Tree& plan) { plan["schema"] = "gearshift.run/1"; }, "schema");
  refused([](Tree& plan) { plan.erase("schema"); }, "schema");
  refused([](Tree& plan) { plan["hash"] = 5; }, "hash");
  refused([](Tree& plan) { plan["layers"] = nullptr; }, "layers");
  refused([](Tree& plan) { plan["layers"][1] = "x"; }, "layers[1]");
  refused([](Tree& plan) { plan["layers"][1]["n"] = 0; }, "layers[1].n");
  refused([](Tree& plan) { plan["layers"][1]["n"] = 1e99; }, "layers[1].n");
  refused([](Tree& plan) { plan["layers"][2]["name"] = plan["layers"][1]["name"]; }, "layers[2]");
  refused([](Tree& plan) { plan["layers"][0]["scheme"]["weight"] = 3; }, "layers[0].scheme.weight");
  refused([](Tree& plan) { plan["layers"][0]["arithmetic"].erase("accumulator"); }, "layers[0].arithmetic.accumulator");
  refused([](Tree& plan) { plan["layers"][0]["kernels"] = Tree::array(); }, "layers[0].kernels");
  refused([](Tree& plan) { plan["layers"][0]["kernels"][0]["m_min"] = 2; }, "layers[0].kernels");
  refused([](Tree& plan) { plan["layers"][0]["kernels"][1]["m_min"] = 18; }, "layers[0].kernels");
  refused([](Tree& plan) { plan["layers"][0]["kernels"][1]["m_max"] = 64; }, "layers[0].kernels");
  refused([](Tree& plan) { plan["layers"][0]["kernels"][0]["m_max"] = nullptr; }, "layers[0].kernels");
  refused([](Tree& plan) { plan["layers"][0]["kernels"][0]["kernel"] = nullptr; }, "layers[0].kernels[0].kernel");
  refused([](Tree& plan) { plan.erase("device"); }, "device");
  for (const std::string& text : {std::string(), std::string("{"), std::string("[]"), std::string(100000, '[')}) {
    const auto record = parse_plan_record(text, "plan.json");
    ASSERT_FALSE(record.ok());
    EXPECT_EQ(exit_code(record.error().code), 2);
  }
  EXPECT_FALSE(read_plan_record("/no/such/plan.json").ok());
  EXPECT_FALSE(read_plan_record("/").ok());
}

TEST(DiffReports, SayTheSame) {
  const PlanRecord before = record_of(test::sample_plan());
  PlanRecord after = before;
  after.subject = "\x1b[31mafter";
  for (RecordedLayer& layer : after.layers) layer.ranges[0].kernel = "other";
  const PlanComparison comparison = compare_plans(before, after);
  const Tree json = Tree::parse(diff_json(before, after, comparison));
  EXPECT_EQ(json["schema"], "gearshift.diff/1");
  EXPECT_EQ(json["same"], 0);
  ASSERT_EQ(json["differences"].size(), 2u);
  EXPECT_EQ(json["differences"][0]["layers"], Tree::parse(R"(["model.layers.0.up", "model.layers.1.up"])"));
  EXPECT_EQ(json["differences"][0]["field"], "kernel");
  EXPECT_EQ(json["differences"][1]["before"], "slow_all");
  EXPECT_EQ(json["differences"][1]["after"], "other");
  for (size_t width = 40; width <= 200; width += 20) {
    const std::string text = diff_text(before, after, comparison, width);
    EXPECT_LE(widest(text), width) << text;
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  }
  const std::string text = diff_text(before, after, comparison, 120);
  EXPECT_NE(text.find("model.layers.*.up: 2 rows of 1536 x 384"), std::string::npos) << text;
  EXPECT_NE(text.find("2 differences; 0 rows are the same"), std::string::npos) << text;
  const std::string same = diff_text(before, before, compare_plans(before, before), 80);
  EXPECT_NE(same.find("0 differences; 3 rows are the same"), std::string::npos) << same;
}

}  // namespace
}  // namespace gearshift
