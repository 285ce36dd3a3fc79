#include "pipeline/isolation.h"

#include <algorithm>
#include <set>

#include "float_model.h"
#include "pipeline/runner.h"
#include "pipeline/verifier.h"

namespace gearshift {
namespace {

using namespace std::chrono_literals;

ChildOutcome script(const std::string& text, std::chrono::milliseconds limit = 20s) {
  return follow_child({"/bin/sh", "-c", text}, {limit, 0});
}

TEST(FollowChild, WhatBecameOfIt) {
  EXPECT_EQ(script("echo begin 4; echo end 4; echo begin 8; echo end 8").failure, "");
  const ChildOutcome crash = script("echo begin 4; echo end 4; echo begin 8; kill -SEGV $$");
  EXPECT_TRUE(crash.possible);
  EXPECT_EQ(crash.m, 8);
  EXPECT_EQ(crash.failure, "ended by signal 11 (Segmentation fault) in a child process (m = 8)");
  EXPECT_NE(script("echo begin 4; kill -ILL $$").failure.find("Illegal instruction"), std::string::npos);
  const ChildOutcome hang = script("echo begin 16; exec sleep 60", 100ms);
  EXPECT_TRUE(hang.possible);
  EXPECT_EQ(hang.failure, "did not return within 0.1 s in a child process (m = 16)");
  EXPECT_EQ(script("echo begin 2; exit 0").failure, "ended with exit code 0 in a child process (m = 2)");
}

TEST(FollowChild, PackingIsTheFirstThatMayGoWrong) {
  const ChildOutcome crash = script("echo pack 4; kill -SEGV $$");
  EXPECT_TRUE(crash.possible);
  EXPECT_EQ(crash.m, 4);
  EXPECT_NE(crash.failure.find("packing weights, m = 4"), std::string::npos) << crash.failure;
  EXPECT_FALSE(script("echo pack 4; echo end 4; exit 1").possible) << "the checkpoint's fault, not the kernel's";
}

TEST(FollowChild, LargeBatchesMayTakeLonger) {
  const auto outcome = follow_child({"/bin/sh", "-c", "echo begin 64; sleep 0.4; echo end 64"}, {100ms, 1000});
  EXPECT_EQ(outcome.failure, "");
}

TEST(FollowChild, WhatSaysNothingAboutTheKernel) {
  for (const char* text : {"exit 1", "exit 0", "kill -SEGV $$", "echo nonsense; exit 0"}) {
    const ChildOutcome outcome = script(text);
    EXPECT_FALSE(outcome.possible) << text;
    EXPECT_FALSE(outcome.failure.empty()) << text;
  }
  EXPECT_FALSE(script("exec sleep 60", 20ms).possible);
  EXPECT_FALSE(follow_child({"/nowhere/program"}, {1s, 0}).possible);
}

class PluginRun : public FloatModel {
 protected:
  Options with_plugin(const std::string& backend, std::map<std::string, std::string> more = {}) const {
    more.emplace("plugin", GEARSHIFT_TEST_PLUGINS "/stub_plugin.so");
    more.emplace("linear-backend", "bf16=" + backend);
    more.emplace("launch-limit", "2");
    more.emplace("layers", "*down_proj");
    return options(std::move(more));
  }
  Result<RunReport> run(const std::string& backend) const { return run_model(model(), with_plugin(backend)); }
};

TEST_F(PluginRun, ARightKernelRuns) {
  const auto report = run("stub_right");
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_TRUE(report->quarantined.empty());
  EXPECT_TRUE(report->plan.notes.empty()) << report->plan.notes.front();
  for (const Measurement& row : report->rows) EXPECT_EQ(row.kernel, "stub_right");
}

TEST_F(PluginRun, WhatKillsTheChildIsQuarantinedAndTheParentLives) {
  for (const auto& [backend, words] : {std::pair<std::string, std::string>{"stub_crash", "signal 11"},
                                       {"stub_illegal", "signal 4"},
                                       {"stub_quits", "exit code 0"},
                                       {"stub_far_write", "signal 11"},
                                       {"stub_crash_packing", "packing weights"},
                                       {"stub_hang", "did not return within 2 s"}}) {
    SCOPED_TRACE(backend);
    const auto report = run(backend);
    ASSERT_TRUE(report.ok()) << report.error().message();
    ASSERT_EQ(report->quarantined.size(), 1u);
    EXPECT_EQ(report->quarantined[0].kernel, backend);
    EXPECT_NE(report->quarantined[0].reason.find(words), std::string::npos) << report->quarantined[0].reason;
    for (const Measurement& row : report->rows) EXPECT_NE(row.kernel, backend);
    // It is remembered: the next process does not try.
    const auto again = run(backend);
    ASSERT_TRUE(again.ok());
    EXPECT_TRUE(again->quarantined.empty());
    EXPECT_TRUE(std::any_of(again->plan.warnings.begin(), again->plan.warnings.end(),
                            [](const Warning& w) { return w.code == "quarantined"; }));
  }
}

TEST_F(PluginRun, WrongNumbersAreQuarantined) {
  for (const std::string backend :
       {"stub_sparse_nan", "stub_unwritten_columns", "stub_fast_wrong", "stub_wrong_above_16"}) {
    SCOPED_TRACE(backend);
    const auto report = run(backend);
    ASSERT_TRUE(report.ok()) << report.error().message();
    ASSERT_EQ(report->quarantined.size(), 1u);
    EXPECT_EQ(report->quarantined[0].kernel, backend);
  }
}

TEST_F(PluginRun, NoVerbPacksWhatDoesNotSurviveIt) {
  const auto verified = verify_model(model(), with_plugin("stub_crash_packing"));
  ASSERT_TRUE(verified.ok()) << verified.error().message();
  EXPECT_EQ(verified->quarantined.size(), 1u);
  EXPECT_FALSE(verified->rows.empty());
  // Raced for its layout of its own, which the budget could pay for.
  std::filesystem::remove(file("store.sqlite"));
  Options options = with_plugin("auto", {{"batch", "256"}, {"memory-budget", "1000000"}});
  options["disable"] = {{"stub_right,stub_crash,stub_illegal,stub_quits,stub_hang,stub_wrong_above_16,stub_sparse_nan",
                         "stub_unwritten_columns,stub_fast_wrong,stub_slow,stub_far_write"},
                        "call",
                        ""};
  const auto tuned = tune_model(model(), options);
  ASSERT_TRUE(tuned.ok()) << tuned.error().message();
  ASSERT_EQ(tuned->quarantined.size(), 1u);
  EXPECT_EQ(tuned->quarantined[0].kernel, "stub_crash_packing");
}

TEST_F(PluginRun, VerifyReportsAndGoesOn) {
  const auto report = verify_model(model(), with_plugin("stub_crash"));
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->quarantined.size(), 1u);
  EXPECT_EQ(report->quarantined[0].kernel, "stub_crash");
  EXPECT_FALSE(report->rows.empty());
  for (const Measurement& row : report->rows) EXPECT_EQ(row.comparison.ok, row.kernel != "stub_crash") << row.kernel;
}

TEST_F(PluginRun, ProofsAreRemembered) {
  ASSERT_TRUE(run("stub_right").ok());
  auto session = Session::open(model(), with_plugin("stub_right"));
  ASSERT_TRUE(session.ok());
  int launches = 0;
  const auto count = [&](const ChildLaunch&) {
    ++launches;
    return ChildOutcome{};
  };
  const Progress none;
  const size_t proofs = session->store.proofs.size();
  EXPECT_GT(proofs, 0u);
  ASSERT_TRUE(Runner(*session, session->registry(), none, count).run().ok());
  EXPECT_EQ(launches, 0) << "proven before on this machine";
  EXPECT_EQ(session->store.proofs.size(), proofs);
  // Another dtype is another key.
  auto half = Session::open(model(), with_plugin("stub_right", {{"dtype", "fp32"}}));
  ASSERT_TRUE(Runner(*half, half->registry(), none, count).run().ok());
  EXPECT_GT(launches, 0);
}

TEST_F(PluginRun, AKernelThatBecameWrongIsFoundByTheBriefCheck) {
  ASSERT_TRUE(run("stub_right").ok());
  auto session = Session::open(model(), with_plugin("stub_right"));
  ASSERT_TRUE(session.ok());
  Registry changed = session->registry();
  Kernel broken = reference_kernel;
  for (KernelList& list : changed.lists) {
    for (ListEntry& entry : list.entries) {
      if (entry.kernel->name != "stub_right") continue;
      broken = *entry.kernel;
      broken.run = [](const RunArgs& args) { std::fill_n(static_cast<uint8_t*>(args.y.data), 2, uint8_t{1}); };
      entry.kernel = &broken;
    }
  }
  const Progress none;
  const auto report = Runner(*session, changed, none).run();
  ASSERT_TRUE(report.ok()) << report.error().message();
  ASSERT_EQ(report->quarantined.size(), 1u);
  EXPECT_EQ(report->quarantined[0].kernel, "stub_right");
}

TEST_F(PluginRun, WithoutAChildItIsSaid) {
  auto session = Session::open(model(), with_plugin("stub_right"));
  ASSERT_TRUE(session.ok());
  const Progress none;
  const auto report = Runner(*session, session->registry(), none, [](const ChildLaunch&) {
                        return ChildOutcome{false, 0, "no program"};
                      }).run();
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->plan.notes.size(), 1u);
  EXPECT_NE(report->plan.notes[0].find("without isolation: no program"), std::string::npos);
}

}  // namespace
}  // namespace gearshift
