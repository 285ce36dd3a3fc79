#include "plan/measured.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

// Times of stub kernels on one layer, with a spread of `percent` around each.
struct Times {
  LayerSpec layer;
  Store store;
  void add(const Kernel& kernel, int64_t m, double us, double percent = 1, int samples = 25) {
    const double half = us * percent / 100;
    store.times.push_back({std::string(kernel.name), kernel.version, "", key_of(*kernel.layout), layer_class(layer),
                           "BF16", "eager", 1, m, us, us - half, us + half, samples});
  }
  Result<Plan> plan(const StubRegistry& stubs, Policy policy = {}) const {
    return plan_of(stubs, {layer}, std::move(policy), here(), store);
  }
};

std::vector<std::string> sources(const Plan& plan) {
  std::vector<std::string> words;
  for (const PlannedRange& range : plan.layers[0].decision->ranges) words.emplace_back(range.source);
  return words;
}

TEST(Buckets, TheLargestPointNotAboveSpeaks) {
  const std::vector<int64_t> points = {1, 2, 4, 8, 1024};
  for (const auto& [m, point] : {std::pair<int64_t, int64_t>{1, 1},
                                 {3, 2},
                                 {5, 4},
                                 {8, 8},
                                 {100, 8},
                                 {1023, 8},
                                 {1024, 1024},
                                 {1025, 1024},
                                 {9999, 1024}})
    EXPECT_EQ(bucket_of(m, points), point) << m;
  EXPECT_EQ(bucket_of(1, {2}), 0);
  EXPECT_EQ(bucket_of(1, {}), 0);
}

TEST(Noise, OnlyClearDifferencesCount) {
  const auto time = [](double us, double percent, int samples) {
    MeasuredTime t;
    t.median_us = us, t.p10_us = us * (1 - percent / 100), t.p90_us = us * (1 + percent / 100), t.samples = samples;
    return t;
  };
  EXPECT_TRUE(beats(time(9, 2, 25), time(10, 2, 25)));
  EXPECT_FALSE(beats(time(10, 2, 25), time(9, 2, 25)));
  EXPECT_FALSE(beats(time(10, 2, 25), time(10, 2, 25)));
  EXPECT_FALSE(beats(time(9.9, 0, 1000), time(10, 0, 1000))) << "1 % is what two runs differ by";
  EXPECT_FALSE(beats(time(9.7, 20, 25), time(10, 20, 25))) << "a wide spread";
  EXPECT_TRUE(beats(time(9.7, 20, 2500), time(10, 20, 2500))) << "and what many samples make of it";
  EXPECT_FALSE(beats(time(5, 0, 3), time(10, 0, 25))) << "three iterations";
  MeasuredTime disturbed = time(9, 0, 25), quiet = time(10, 1, 25);
  disturbed.p90_us = 90;
  EXPECT_FALSE(beats(disturbed, quiet));
  disturbed.error_us = 0.05;
  EXPECT_TRUE(beats(disturbed, quiet)) << "a row that says how certain its median is";
}

// A native kernel and a weight-only one on the same packed weights.
struct Crossover : testing::Test, Times {
  StubRegistry stubs;
  Kernel *native, *weight_only;
  Crossover() {
    layer = layer_of("l", nvfp4_scheme(), 5120, 17408);
    native = &stubs.add(Family::nvfp4_w4a4, "stub_native", "native");
    weight_only = &stubs.add(Family::nvfp4_w4a4, "stub_weight_only", "marlin");
    weight_only->activation = ActivationUse::float16;
    native->layout = weight_only->layout = stubs.layout("rows");
    const double weights[] = {10, 13, 60, 900}, own[] = {13, 13, 22, 210};
    const int64_t batch[] = {1, 8, 64, 2048};
    for (int i = 0; i < 4; ++i) {
      add(*weight_only, batch[i], weights[i]);
      add(*native, batch[i], own[i]);
    }
  }
};

TEST_F(Crossover, Case56HigherSwitchesWhereMeasured) {
  const Plan plan = this->plan(stubs).value();
  EXPECT_EQ(served(plan), "stub_weight_only 1..7, stub_native 8..");
  EXPECT_EQ(sources(plan), (std::vector<std::string>{"measured", "measured"}));
  EXPECT_EQ(plan.layers[0].decision->second_layout_bytes, static_cast<uint64_t>(kPackedBytes)) << "one copy";
  EXPECT_TRUE(mentions(verdict(plan, "stub_weight_only").reason, "10 us at M 1, stub_native 13 us"))
      << verdict(plan, "stub_weight_only").reason;
}

TEST_F(Crossover, Case56ExactStaysNative) {
  Policy exact;
  exact.arithmetic = Arithmetic::exact;
  EXPECT_EQ(served(plan(stubs, exact).value()), "stub_native 1..");
}

TEST_F(Crossover, Case56OneKernelForAllBatchSizes) {
  Policy single;
  single.single_kernel = true;
  single.batch = {1, 8, 64, 2048};
  EXPECT_EQ(served(plan(stubs, single).value()), "stub_native 1..");
  single.batch = {1, 1, 1};
  EXPECT_EQ(served(plan(stubs, single).value()), "stub_weight_only 1..");
}

TEST_F(Crossover, StaticSelectionAndOtherKeysIgnoreTimes) {
  Policy listed;
  listed.selection = "static";
  EXPECT_EQ(served(plan(stubs, listed).value()), "stub_native 1..");
  EXPECT_EQ(sources(plan(stubs, listed).value()), std::vector<std::string>{"static"});
  const Store all = store;
  for (int field = 0; field < 7; ++field) {
    store = all;
    for (MeasuredTime& time : store.times) {
      if (field == 0) time.kernel_version = 2;
      if (field == 1) time.layout = "rows/2";
      if (field == 2) time.layer_class += "x";
      if (field == 3) time.dtype = "F16";
      if (field == 4) time.mode = "graph";
      if (field == 5) time.threads = 2;
      if (field == 6) time.samples = 3;
    }
    EXPECT_EQ(served(plan(stubs).value()), "stub_native 1..") << field;
  }
}

TEST_F(Crossover, QuarantineWinsOverMeasurement) {
  store.quarantines.push_back({"stub_weight_only", 1, layer_class(layer), "BF16", 1, 4, "row 3 is off"});
  const Plan plan = this->plan(stubs).value();
  EXPECT_EQ(served(plan), "stub_native 1..") << "the piece 1..7 is not allowed as a whole";
  store.quarantines[0].m_min = 9, store.quarantines[0].m_max = 0;
  EXPECT_EQ(served(this->plan(stubs).value()), "stub_weight_only 1..7, stub_native 8..");
}

TEST_F(Crossover, ARequestStandsAboveMeasurements) {
  Policy asks;
  asks.linear.global = "native";
  EXPECT_EQ(served(plan(stubs, asks).value()), "stub_native 1..");
}

TEST_F(Crossover, AnotherLayoutIsNotRaced) {
  weight_only->layout = stubs.layout("tiles");
  for (MeasuredTime& time : store.times)
    if (time.kernel == "stub_weight_only") time.layout = "tiles/1";
  EXPECT_EQ(served(plan(stubs).value()), "stub_native 1..");
}

TEST_F(Crossover, AKernelRunsByItsFastestTactic) {
  weight_only->tactics = {"split", "wide"};
  const auto add_tactic = [&](const std::string& tactic, int64_t m, double us) {
    add(*weight_only, m, us);
    store.times.back().tactic = tactic;
  };
  add_tactic("wide", 1, 4), add_tactic("split", 1, 3.98), add_tactic("unknown", 1, 1);
  add_tactic("wide", 8, 6), add_tactic("wide", 64, 30);
  const auto tactics = [&](const Plan& plan) {
    std::string words;
    for (const PlannedRange& range : plan.layers[0].decision->ranges)
      words +=
          std::string(range.kernel->name) + "/" + std::string(range.tactic) + " " + std::to_string(range.m_min) + " ";
    return words;
  };
  const Plan plan = this->plan(stubs).value();
  EXPECT_EQ(tactics(plan), "stub_weight_only/split 1 stub_weight_only/wide 8 stub_native/ 64 ")
      << "the first of two that tie; one that the kernel does not have is none";
  EXPECT_NE(plan.hash, Times::plan(stubs,
                                   [] {
                                     Policy listed;
                                     listed.selection = "static";
                                     return listed;
                                   }())
                           ->hash);
  // What was found wrong at a batch size has no time there.
  store.quarantines.push_back({"stub_weight_only", 1, layer_class(layer), "BF16", 1, 7, "zeros", "split"});
  EXPECT_EQ(tactics(this->plan(stubs).value()), "stub_weight_only/wide 1 stub_native/ 64 ");
  // A plan on paper keeps it, and a lock asks for it.
  const PlanRecord record = record_of(plan);
  EXPECT_EQ(record.layers[0].ranges[0].tactic, "split");
  EXPECT_EQ(compare_plans(record, record_of(this->plan(stubs).value())).differences.size(), 1u);
}

TEST_F(Crossover, TheOrderOfRowsDoesNotMatter) {
  const std::string expected = plan(stubs)->hash;
  std::reverse(store.times.begin(), store.times.end());
  EXPECT_EQ(plan(stubs)->hash, expected);
}

TEST(Case63, EveryBatchSizeGetsItsBucketsWinner) {
  StubRegistry stubs;
  Times times;
  times.layer = layer_of("l", fp8_channel_scheme(), 4096, 4096);
  const Kernel& first = stubs.add(Family::fp8_w8a8, "stub_first", "native");
  const Kernel& second = stubs.add(Family::fp8_w8a8, "stub_second", "native");
  for (int64_t m = 1, i = 0; m <= 1024; m *= 2, ++i) {
    times.add(first, m, 10);
    times.add(second, m, i % 2 == 0 ? 5 : 20);  // wins at 1, 4, 16, 64, 256, 1024
  }
  const Plan plan = times.plan(stubs).value();
  for (const auto& [m, winner] : {std::pair<int64_t, std::string>{1, "stub_second"},
                                  {3, "stub_first"},
                                  {5, "stub_second"},
                                  {100, "stub_second"},
                                  {1000, "stub_first"},
                                  {1025, "stub_second"},
                                  {1 << 20, "stub_second"}})
    EXPECT_EQ(range_for(*plan.layers[0].decision, m).kernel->name, winner) << m;
  const std::vector<std::string> all = sources(plan);
  EXPECT_EQ(std::count(all.begin(), all.end(), "static"), 0) << "nobody falls back for want of a measurement";
}

TEST(Case63, BelowTheFirstPointTheListDecides) {
  StubRegistry stubs;
  Times times;
  times.layer = layer_of("l", fp8_channel_scheme(), 4096, 4096);
  times.add(stubs.add(Family::fp8_w8a8, "stub_first", "native"), 8, 10);
  times.add(stubs.add(Family::fp8_w8a8, "stub_second", "native"), 8, 5);
  const Plan plan = times.plan(stubs).value();
  EXPECT_EQ(served(plan), "stub_first 1..7, stub_second 8..");
  EXPECT_EQ(sources(plan), (std::vector<std::string>{"static", "measured"}));
}

TEST(Case65, TheDefaultWinsTies) {
  StubRegistry stubs;
  Times times;
  times.layer = layer_of("l", float_scheme(), 5120, 2880);
  const Kernel& listed = stubs.add(Family::bf16, "stub_default", "native");
  const Kernel& near = stubs.add(Family::bf16, "stub_near", "native");
  const Kernel& sloppy = stubs.add(Family::bf16, "stub_sloppy", "native");
  for (const int64_t m : {64, 4096, 8192}) {
    times.add(listed, m, 100, 2);
    times.add(near, m, 99, 2);
    times.add(sloppy, m, 80, 1, 3);
  }
  EXPECT_EQ(served(times.plan(stubs).value()), "stub_default 1..");
}

TEST(Ties, AmongChallengersTheListDecides) {
  StubRegistry stubs;
  Times times;
  times.layer = layer_of("l", float_scheme(), 64, 64);
  times.add(stubs.add(Family::bf16, "stub_default", "native"), 1, 100);
  times.add(stubs.add(Family::bf16, "stub_b", "native"), 1, 50.2);
  times.add(stubs.add(Family::bf16, "stub_a", "native"), 1, 50);
  EXPECT_EQ(served(times.plan(stubs).value()), "stub_b 1..");
}

}  // namespace
}  // namespace gearshift
