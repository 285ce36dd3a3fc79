#include "plan/lock.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

Result<Plan> plan_locked(const StubRegistry& stubs, std::vector<LayerSpec> layers, const PlanRecord& lock,
                         Policy policy = {}, const Store& store = {}) {
  PlanRequest request;
  request.layers = std::move(layers);
  request.device = here();
  request.policy = std::move(policy);
  request.registry = &stubs.registry();
  request.store = &store;
  request.lock = &lock;
  return make_plan(std::move(request));
}

// Two kernels of one layout, the first for few rows; a third in another layout.
struct Shop {
  StubRegistry stubs;
  Kernel* decode = nullptr;
  Kernel* any = nullptr;
  Kernel* other = nullptr;
  std::vector<LayerSpec> rows = {layer_of("layers.0.up", nvfp4_scheme(), 64, 64),
                                 layer_of("layers.1.up", nvfp4_scheme(), 64, 64)};
  Shop() {
    decode = &stubs.add(Family::nvfp4_w4a4, "stub_decode", "native");
    stubs.line(Family::nvfp4_w4a4).m_max = 16;
    any = &stubs.add(Family::nvfp4_w4a4, "stub_any", "native");
    any->layout = decode->layout = stubs.layout("shared");
    other = &stubs.add(Family::nvfp4_w4a4, "stub_other", "marlin");
    other->layout = stubs.layout("other");
  }
};

TEST(Lock, KeepsWhatThePlanChose) {
  Shop shop;
  const Plan plan = plan_of(shop.stubs, shop.rows).value();
  const PlanRecord record = record_of(plan);
  const Plan same = plan_locked(shop.stubs, shop.rows, record).value();
  EXPECT_EQ(same.hash, plan.hash);
  EXPECT_EQ(served(same), "stub_decode 1..16, stub_any 17..");
  EXPECT_TRUE(mentions(verdict(same, "stub_any").reason, "locked plan"));
  EXPECT_EQ(verdict(same, "stub_other").field, "layout");

  // Another order of the list, a request and measurements change nothing.
  auto& entries = shop.stubs.list(Family::nvfp4_w4a4).entries;
  std::reverse(entries.begin(), entries.end());
  EXPECT_EQ(served(plan_of(shop.stubs, shop.rows).value()), "stub_other 1..");
  for (const char* backend : {"auto", "marlin"}) {
    const Plan kept = plan_locked(shop.stubs, shop.rows, record, strictly(prefer(backend))).value();
    EXPECT_EQ(served(kept), "stub_decode 1..16, stub_any 17..");
    EXPECT_FALSE(kept.layers[0].decision->fallback);
    EXPECT_TRUE(codes(kept).empty());
  }
  EXPECT_EQ(plan_locked(shop.stubs, {shop.rows[1]}, record).value().layers.size(), 1u) << "some of its rows are enough";
}

TEST(Lock, EachRowKeepsItsOwn) {
  Shop shop;
  Policy one;
  one.layers = {{"layers.1.*", "marlin"}};
  const PlanRecord record = record_of(plan_of(shop.stubs, shop.rows, one).value());
  const Plan kept = plan_locked(shop.stubs, shop.rows, record).value();
  EXPECT_EQ(served(kept, 0), "stub_decode 1..16, stub_any 17..");
  EXPECT_EQ(served(kept, 1), "stub_other 1..");
}

TEST(Lock, AMeasuredChoiceStaysMeasured) {
  Shop shop;
  PlanRecord record = record_of(plan_of(shop.stubs, shop.rows).value());
  for (RecordedLayer& layer : record.layers) layer.ranges[1].source = "measured";
  const Plan kept = plan_locked(shop.stubs, shop.rows, record).value();
  EXPECT_EQ(kept.layers[0].decision->ranges[0].source, "static");
  EXPECT_EQ(kept.layers[0].decision->ranges[1].source, "measured");
}

TEST(Lock, WhatCannotBeKeptIsListedAndExit3) {
  const auto refusal = [](const std::function<void(Shop&, PlanRecord&, Policy&, Store&)>& change) {
    Shop shop;
    PlanRecord record = record_of(plan_of(shop.stubs, shop.rows).value());
    record.subject = "earlier.json";
    Policy policy;
    Store store;
    change(shop, record, policy, store);
    const auto plan = plan_locked(shop.stubs, shop.rows, record, policy, store);
    EXPECT_FALSE(plan.ok());
    if (plan.ok()) return std::string();
    EXPECT_EQ(exit_code(plan.error().code), 3);
    EXPECT_TRUE(mentions(plan.error().subject, "earlier.json"));
    EXPECT_EQ(plan.error().details.size(), 1u) << "both rows are one group";
    return join(plan.error().details, "\n");
  };
  using R = PlanRecord;
  EXPECT_TRUE(mentions(refusal([](Shop& shop, R&, Policy&, Store&) { shop.any->contract.k.multiple = 128; }),
                       "stub_any for M 17 and up: "));
  EXPECT_TRUE(mentions(refusal([](Shop& shop, R&, Policy&, Store&) { shop.decode->contract.m.max = 8; }),
                       "stub_decode for M 1..16: serves M 1..8 here"));
  EXPECT_TRUE(mentions(refusal([](Shop&, R&, Policy& policy, Store&) { policy.disable = {"stub_any"}; }),
                       "left out by --disable stub_any"));
  EXPECT_TRUE(mentions(refusal([](Shop& shop, R&, Policy&, Store& store) {
                         store.quarantines.push_back({"stub_any", 1, layer_class(shop.rows[0]), "BF16", 1, 0, "off"});
                       }),
                       "wrong numbers"));
  EXPECT_TRUE(mentions(refusal([](Shop&, R& record, Policy&, Store&) {
                         for (RecordedLayer& layer : record.layers) layer.ranges[0].kernel = "stub_gone\n";
                       }),
                       "stub_gone\\n for M 1..16: is not registered for nvfp4_w4a4 on cpu"));
  EXPECT_TRUE(mentions(refusal([](Shop&, R& record, Policy&, Store&) {
                         for (RecordedLayer& layer : record.layers) layer.ranges[1].layout = "v1";
                       }),
                       "reads layout shared in this build, and v1 in the locked plan"));
  EXPECT_TRUE(mentions(refusal([](Shop& shop, R&, Policy&, Store&) { shop.any->activation = ActivationUse::float16; }),
                       "multiplies bf16 activations here, and nvfp4 in the locked plan"));
  EXPECT_TRUE(mentions(refusal([](Shop& shop, R&, Policy&, Store&) { shop.any->layout = shop.other->layout; }),
                       "reads layout other"));
  EXPECT_TRUE(mentions(refusal([](Shop& shop, R&, Policy&, Store&) {
                         for (LayerSpec& layer : shop.rows) layer.k = 128;
                       }),
                       "is nvfp4_w4a4 64 x 128 here and nvfp4_w4a4 64 x 64 in the locked plan"));
  EXPECT_TRUE(mentions(refusal([](Shop&, R& record, Policy&, Store&) { record.layers.clear(); }),
                       "the locked plan does not have it"));
  EXPECT_TRUE(mentions(refusal([](Shop& shop, R& record, Policy&, Store&) {
                         for (RecordedLayer& layer : record.layers) {
                           layer.ranges[1].kernel = "stub_other";
                           layer.ranges[1].backend = "marlin";
                           layer.ranges[1].layout = "other";
                         }
                         EXPECT_NE(shop.other->layout, shop.decode->layout);
                       }),
                       "packs other beside shared"));
}

}  // namespace
}  // namespace gearshift
