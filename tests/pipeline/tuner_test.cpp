#include "pipeline/tuner.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "float_model.h"
#include "pipeline/runner.h"
#include "plan/measured.h"

namespace gearshift {
namespace {

void all_zeros(const RunArgs& args) {
  for (int64_t row = 0; row < args.y.rows; ++row)
    std::memset(static_cast<uint8_t*>(args.y.data) + row * args.y.stride * element_bytes(args.y.dtype), 0,
                static_cast<size_t>(args.y.cols * element_bytes(args.y.dtype)));
}
void wrong_from_32_rows(const RunArgs& args) { args.x.rows < 32 ? reference_kernel.run(args) : all_zeros(args); }

// Times by script: kernel and batch size -> microseconds. Kernels run for real once a lap.
struct Script {
  std::function<double(std::string_view kernel, int64_t m, std::string_view mode, bool cold)> us;
  std::map<std::string, double, std::less<>> us_of_tactic;  // before `us`
  double now = 0;
  uint64_t free_bytes = 0;
  bool capturing = false;
  int launches = 0, chilled = 0;
  std::vector<std::pair<std::string, int64_t>> raced;

  TuneDevice device() {
    HostClock clock;
    clock.time = [this, before = -1](const TimedLaunch& launch) mutable {
      launch.launch();
      ++launches;
      const bool cold = chilled != before;
      before = chilled;
      raced.emplace_back(launch.kernel->name, launch.m);
      const auto tactic = us_of_tactic.find(launch.tactic);
      const double time =
          tactic != us_of_tactic.end() ? tactic->second : us(launch.kernel->name, launch.m, launch.mode, cold);
      now += time / 1e6;
      return LapTime{time, 0};
    };
    clock.make_cold = [this](const PreparedLayer&, const Kernel&, int64_t) { ++chilled; };
    TuneDevice device;
    device.start = [clock](const RaceSetting& setting) { return laps_on_host(clock, setting); };
    device.capturing = [this] { return capturing; };
    device.free_bytes = [this] { return free_bytes; };
    device.now_s = [this] { return now += 1e-6; };
    return device;
  }
};

class TunerTest : public FloatModel {
 protected:
  Result<TuneReport> tune(const CopiedKernels& kernels, Script& script, const Options& options, Ranks ranks = {},
                          Isolation isolation = nullptr) const {
    auto session = Session::open(model(), options);
    if (!session.ok()) return session.error();
    const Progress none;
    return Tuner(*session, kernels.registry(), none, script.device(), std::move(isolation), ranks).run();
  }
  static std::string served(const Plan& plan, size_t row = 0) {
    std::string text;
    for (const PlannedRange& range : plan.layers[row].decision->ranges)
      text += (text.empty() ? "" : ", ") + std::string(range.kernel->name) + " " + std::to_string(range.m_min) + ".." +
              (range.m_max == 0 ? "" : std::to_string(range.m_max));
    return text;
  }
  size_t stored(EntryKind kind) const {
    StoreFile store(file("store.sqlite"));
    const std::vector<StoreEntry> rows = store.entries();
    return static_cast<size_t>(
        std::count_if(rows.begin(), rows.end(), [&](const StoreEntry& row) { return row.kind == kind; }));
  }
};

TEST_F(TunerTest, FindsTheFasterKernelAndTheSwitchPoint) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("small_batches");
  Script script;
  // The lines cross between M 22 and 23.
  script.us = [](std::string_view kernel, int64_t m, std::string_view, bool) {
    return kernel == "listed" ? 100.0 : 10 + 4.0 * static_cast<double>(m);
  };
  const auto report = tune(kernels, script, options());
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->groups, 2u);
  EXPECT_EQ(report->tunable, 2u);
  ASSERT_EQ(report->plan.layers[0].decision->ranges.size(), 2u) << served(report->plan);
  const int64_t edge = report->plan.layers[0].decision->ranges[0].m_max;
  EXPECT_EQ(report->plan.layers[0].decision->ranges[0].kernel->name, "small_batches");
  EXPECT_GE(edge, 19) << served(report->plan);
  EXPECT_LE(edge, 25) << served(report->plan);
  EXPECT_EQ(report->plan.layers[0].decision->ranges[0].source, "measured");
  ASSERT_TRUE(report->oracle_gap);
  EXPECT_LE(*report->oracle_gap, 1.02);
  ASSERT_EQ(report->batch.size(), 3u);
  EXPECT_DOUBLE_EQ(report->batch[0].static_us, 300) << "three layers, two of them measured once";
  EXPECT_DOUBLE_EQ(report->batch[0].chosen_us, 42);
  // Both sides of the switch are proven.
  auto session = Session::open(model(), options());
  const std::string& layer_class = report->plan.layers[0].decision->layer_class;
  EXPECT_TRUE(session->is_proven(*report->plan.layers[0].decision->ranges[0].kernel, layer_class, edge));
  EXPECT_TRUE(session->is_proven(*report->plan.layers[0].decision->ranges[1].kernel, layer_class, edge + 1));
  // What the store holds is what a later plan uses.
  EXPECT_EQ(session->plan(kernels.registry())->hash, report->plan.hash);
  EXPECT_NE(session->plan(kernels.registry(), "static")->hash, report->plan.hash);
}

TEST_F(TunerTest, ASecondRunMeasuresNothingAgain) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("other");
  Script script;
  script.us = [](std::string_view kernel, int64_t m, std::string_view, bool) {
    return kernel == "listed" ? 100.0 : 10 + 4.0 * static_cast<double>(m);
  };
  const auto first = tune(kernels, script, options());
  ASSERT_TRUE(first.ok());
  const int launches = script.launches;
  const auto second = tune(kernels, script, options());
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(script.launches, launches);
  EXPECT_EQ(second->measured, 0u);
  EXPECT_EQ(second->reused, first->measured + first->reused);
  EXPECT_EQ(second->plan.hash, first->plan.hash);
  EXPECT_EQ(second->rows[0].previous, second->rows[0].chosen);
}

TEST_F(TunerTest, WhereRunningADoubtfulRaceAgainMovesTheSwitchItIsFound) {
  write_model({{"model.layers.0.a", 24}});
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("other");
  Script script;
  // Within noise at first, so that the listed kernel stays; the second race tells them apart from 8 rows on.
  script.us = [&](std::string_view kernel, int64_t m, std::string_view, bool) {
    if (m < 8) return 1.0;
    if (kernel == "listed") return 10.0;
    return stored(EntryKind::measurement) < 4 ? 9.85 : 5.0;
  };
  const auto first = tune(kernels, script, options({{"batch", "1,16"}}));
  ASSERT_TRUE(first.ok()) << first.error().message();
  EXPECT_EQ(served(first->plan), "listed 1..7, other 8..");
  const auto second = tune(kernels, script, options({{"batch", "1,16"}}));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->measured, 0u);
  EXPECT_EQ(second->plan.hash, first->plan.hash);
}

TEST_F(TunerTest, Case66TheModeIsPartOfTheKeyAndOfTheTime) {
  CopiedKernels kernels;
  kernels.add("host_bound"), kernels.add("device_bound");
  Script script;
  script.us = [](std::string_view kernel, int64_t, std::string_view mode, bool) {
    return kernel == "host_bound" ? 8.0 + (mode == "eager" ? 150 : 0) : 12.0 + (mode == "eager" ? 15 : 0);
  };
  ASSERT_TRUE(tune(kernels, script, options({{"mode", "eager"}})).ok());
  const auto graph = tune(kernels, script, options({{"mode", "graph"}}));
  ASSERT_TRUE(graph.ok());
  EXPECT_EQ(served(graph->plan), "host_bound 1..");
  EXPECT_EQ(served(*Session::open(model(), options({{"mode", "eager"}}))->plan(kernels.registry())),
            "device_bound 1..");
}

TEST_F(TunerTest, Case66ColdWeightsRejectTheWarmOnlyWinner) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("warm_only");
  Script script;
  script.us = [](std::string_view kernel, int64_t, std::string_view, bool cold) {
    return kernel == "listed" ? 10.0 : cold ? 20.0 : 5.0;
  };
  const auto report = tune(kernels, script, options());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(served(report->plan), "listed 1..");
  EXPECT_EQ(script.chilled, script.launches);
}

TEST_F(TunerTest, Case65TheDefaultIsAlwaysInTheRaceAndWinsTies) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("near"), kernels.add("slow");
  Script script;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  script.us = [&](std::string_view kernel, int64_t, std::string_view, bool) {
    std::uniform_real_distribution<double> noise(0.98, 1.02);
    return (kernel == "listed" ? 100 : kernel == "near" ? 99.5 : 120) * noise(random);
  };
  const auto report = tune(kernels, script, options());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(served(report->plan), "listed 1..");
  for (const int64_t m : {1, 16, 64})
    EXPECT_EQ(std::count(script.raced.begin(), script.raced.end(), std::pair<std::string, int64_t>("listed", m)) > 0,
              true)
        << m;
  StoreFile store(file("store.sqlite"));
  for (const StoreEntry& row : store.entries()) {
    if (row.kind == EntryKind::measurement && row.kernel == "listed") {
      EXPECT_GE(row.samples, 25);
      EXPECT_GT(row.p90_us, row.p10_us);
    }
  }
}

TEST_F(TunerTest, FasterButWrongIsQuarantinedAndNeverRaced) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("zeros", "native", all_zeros),
      kernels.add("wrong_large", "native", wrong_from_32_rows);
  Script script;
  script.us = [](std::string_view kernel, int64_t, std::string_view, bool) { return kernel == "listed" ? 10.0 : 1.0; };
  const auto report = tune(kernels, script, options());
  ASSERT_TRUE(report.ok()) << report.error().message();
  for (const auto& [kernel, m] : script.raced) {
    EXPECT_NE(kernel, "zeros");
    EXPECT_FALSE(kernel == "wrong_large" && m >= 32);
  }
  EXPECT_FALSE(report->quarantined.empty());
  for (const LayerPlan& layer : report->plan.layers)
    EXPECT_EQ(range_for(*layer.decision, 64).kernel->name, "listed") << served(report->plan);
  EXPECT_EQ(stored(EntryKind::quarantine), report->quarantined.size());
}

void by_tactic(const RunArgs& args) { args.tactic == "wrong" ? all_zeros(args) : reference_kernel.run(args); }

TEST_F(TunerTest, TacticsRaceAndTheFastestRightOneIsPlannedAndRun) {
  CopiedKernels kernels;
  Kernel& listed = kernels.add("listed", "native", by_tactic);
  listed.tactics = {"wrong", "quick", "slow"};
  Script script;
  script.us = [](std::string_view, int64_t, std::string_view, bool) { return 10.0; };
  script.us_of_tactic = {{"wrong", 1}, {"quick", 5}, {"slow", 20}};
  const auto report = tune(kernels, script, options());
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->tunable, 2u) << "one kernel with tactics is a choice";
  ASSERT_EQ(report->plan.layers[0].decision->ranges.size(), 1u);
  EXPECT_EQ(report->plan.layers[0].decision->ranges[0].tactic, "quick");
  EXPECT_EQ(report->rows[0].chosen_tactic, "quick");
  EXPECT_DOUBLE_EQ(*report->oracle_gap, 1);
  EXPECT_DOUBLE_EQ(report->batch[0].static_us / report->batch[0].chosen_us, 2);
  ASSERT_FALSE(report->quarantined.empty());
  for (const Quarantine& row : report->quarantined) EXPECT_EQ(row.tactic, "wrong");
  // The kernel itself stays, and a run proves and launches the tactic.
  auto session = Session::open(model(), options());
  const auto ran = Runner(*session, kernels.registry(), nullptr).run();
  ASSERT_TRUE(ran.ok()) << ran.error().message();
  for (const Measurement& row : ran->rows) EXPECT_EQ(row.tactic, "quick");
  EXPECT_EQ(ran->plan.hash, report->plan.hash);
}

// Starting a child takes longer than a launch: all tactics share one, and only a failure is looked into one by one.
TEST_F(TunerTest, TacticsAreLaunchedForTheFirstTimeTogether) {
  CopiedKernels kernels;
  kernels.add("listed", "native").tactics = {"quick", "fatal", "slow"};
  for (const bool fatal : {false, true}) {
    Script script;
    script.us = [](std::string_view, int64_t, std::string_view, bool) { return 10.0; };
    std::vector<std::string> alone;
    size_t together = 0;
    const auto report =
        tune(kernels, script, options({{"dtype", fatal ? "fp16" : "fp32"}}), {}, [&](const ChildLaunch& launch) {
          const bool many = launch.tactic.find(',') != std::string::npos;
          if (many) ++together;
          if (!many) alone.push_back(launch.tactic);
          const bool ends = fatal && launch.tactic.find("fatal") != std::string::npos;
          return ChildOutcome{true, ends ? launch.sizes.front() : 0, ends ? "ended by signal 11" : ""};
        });
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_GT(together, 0u);
    EXPECT_EQ(alone.empty(), !fatal);
    EXPECT_EQ(report->quarantined.empty(), !fatal);
    for (const Quarantine& row : report->quarantined) EXPECT_EQ(row.tactic, "fatal");
  }
}

TEST_F(TunerTest, ASecondLayoutRacesWhereTheBudgetPaysForIt) {
  CopiedKernels kernels;
  Layout rows, tiles;
  for (Layout* layout : {&rows, &tiles}) {
    layout->name = layout == &rows ? "rows" : "tiles";
    layout->bytes = [](const LayerSpec& layer) { return layer.n * layer.k * 2; };
    layout->pack = [](const LayerWeights&, uint8_t*, int) {};
  }
  kernels.add("listed").layout = &rows;
  kernels.add("tiled").layout = &tiles;
  kernels.prefer(1, 0);
  Script script;
  script.us = [](std::string_view kernel, int64_t m, std::string_view, bool) {
    return kernel == "tiled" ? (m >= 64 ? 5.0 : 15.0) : 10.0;
  };
  EXPECT_EQ(tune(kernels, script, options())->tunable, 0u) << "one layout, one kernel";
  const auto poor = tune(kernels, script, options({{"memory-budget", "1000"}}));
  EXPECT_EQ(poor->tunable, 0u);
  const auto rich = tune(kernels, script, options({{"memory-budget", "1000000"}}));
  ASSERT_TRUE(rich.ok()) << rich.error().message();
  EXPECT_EQ(rich->tunable, 2u);
  ASSERT_EQ(rich->plan.layers[0].decision->ranges.size(), 2u) << served(rich->plan);
  EXPECT_EQ(range_for(*rich->plan.layers[0].decision, 1).kernel->name, "listed");
  EXPECT_EQ(range_for(*rich->plan.layers[0].decision, 64).kernel->name, "tiled");
  EXPECT_EQ(memory_of(rich->plan).second_layout_bytes, 2u * (24 + 24 + 40) * 64 * 2) << "both layouts of every layer";
  EXPECT_LE(*rich->oracle_gap, 1.02);
  // One layer's worth: the other keeps its layout, and the gap is held against what it may have.
  const auto one = tune(kernels, script, options({{"memory-budget", std::to_string(24 * 64 * 2)}}));
  ASSERT_TRUE(one.ok());
  size_t shifted = 0;
  for (const LayerPlan& layer : one->plan.layers) shifted += layer.decision->ranges.size() == 2 ? 1 : 0;
  EXPECT_EQ(shifted, 1u);
  EXPECT_LE(*one->oracle_gap, 1.02);
}

TEST_F(TunerTest, Case68NoMemoryMeansNotMeasured) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("other");
  for (const bool limit : {true, false}) {
    Script script;
    script.us = [](std::string_view, int64_t, std::string_view, bool) { return 10.0; };
    script.free_bytes = limit ? 0 : 100;
    const auto report = tune(kernels, script,
                             options(limit ? std::map<std::string, std::string>{{"memory-limit", "100"}}
                                           : std::map<std::string, std::string>{}));
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(script.launches, 0);
    EXPECT_EQ(stored(EntryKind::measurement), 0u);
    ASSERT_FALSE(report->not_measured.empty());
    EXPECT_NE(report->not_measured[0].find("memory: needs"), std::string::npos) << report->not_measured[0];
    EXPECT_FALSE(report->oracle_gap);
    EXPECT_EQ(served(report->plan), "listed 1..");
  }
}

TEST_F(TunerTest, Case69NothingHappensDuringCapture) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("other");
  Script script;
  script.capturing = true;
  const auto report = tune(kernels, script, options());
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::usage);
  EXPECT_NE(report.error().message().find("captured"), std::string::npos);
  EXPECT_EQ(script.launches, 0);
  EXPECT_FALSE(std::filesystem::exists(file("store.sqlite")));
}

TEST_F(TunerTest, Case72NothingToTuneIsSaidAndNothingIsRun) {
  CopiedKernels one;
  one.add("only");
  Script script;
  const auto report = tune(one, script, options());
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->tunable, 0u);
  EXPECT_EQ(report->groups, 2u);
  EXPECT_EQ(script.launches, 0);
  ASSERT_EQ(report->not_measured.size(), 2u);
  EXPECT_NE(report->not_measured[0].find("nothing to choose, only only passes"), std::string::npos)
      << report->not_measured[0];
  CopiedKernels two;
  two.add("listed"), two.add("other");
  EXPECT_EQ(tune(two, script, options({{"disable", "other"}}))->tunable, 0u);
}

TEST_F(TunerTest, TheTimeBudgetEndsItAndTheRestKeepsItsDefault) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("faster");
  Script script;
  script.us = [](std::string_view kernel, int64_t, std::string_view, bool) { return kernel == "listed" ? 1e4 : 5e3; };
  const auto report = tune(kernels, script, options({{"time-budget", "0.2"}}));
  ASSERT_TRUE(report.ok());
  EXPECT_LT(report->measured, 6u);
  EXPECT_GE(report->measured, 1u);
  EXPECT_NE(report->not_measured.back().find("time budget"), std::string::npos);
  EXPECT_LT(script.now, 3);
}

TEST_F(TunerTest, WithoutAStoreTheResultHoldsForTheRun) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("faster");
  Script script;
  script.us = [](std::string_view kernel, int64_t, std::string_view, bool) { return kernel == "listed" ? 10.0 : 5.0; };
  const auto report = tune(kernels, script, options({{"store", "off"}}));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(served(report->plan), "faster 1..");
  EXPECT_FALSE(std::filesystem::exists(file("store.sqlite")));
}

TEST_F(TunerTest, HopelessKernelsAreNotTriedAtLargeBatches) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("slow"), kernels.add("near");
  Script script;
  script.us = [](std::string_view kernel, int64_t, std::string_view, bool) { return kernel == "slow" ? 100.0 : 10.0; };
  ASSERT_TRUE(tune(kernels, script, options({{"batch", "1,2,4,8"}})).ok());
  std::set<int64_t> tried;
  for (const auto& [kernel, m] : script.raced)
    if (kernel == "slow") tried.insert(m);
  EXPECT_EQ(tried, (std::set<int64_t>{1, 2}));
}

TEST_F(TunerTest, EightProcessesNeitherCorruptNorRepeat) {
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("faster");
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Script script;
      script.us = [](std::string_view kernel, int64_t, std::string_view, bool) {
        return kernel == "listed" ? 10.0 : 5.0;
      };
      const auto report = tune(kernels, script, options({{"batch", "1,2,4,8,16,32"}}));
      _exit(report.ok() ? static_cast<int>(report->measured) : 100);
    }
    children.push_back(child);
  }
  int measured = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_LT(WEXITSTATUS(status), 100);
    measured += WEXITSTATUS(status);
  }
  // Two classes, six batch sizes: each measured by one process.
  EXPECT_EQ(measured, 12);
  EXPECT_EQ(stored(EntryKind::measurement), 24u);
  EXPECT_TRUE(StoreFile(file("store.sqlite")).check({}).problems.empty());
}

TEST_F(TunerTest, EightRanksOnePlan) {
  write_model({{"model.layers.0.a", 24}, {"model.layers.0.b", 32}, {"model.layers.0.c", 40}, {"model.layers.0.d", 48}});
  CopiedKernels kernels;
  kernels.add("listed"), kernels.add("faster");
  std::vector<pid_t> children;
  std::vector<std::string> files;
  for (int i = 0; i < 8; ++i) {
    files.push_back(file("hash" + std::to_string(i)));
    const pid_t child = fork();
    if (child == 0) {
      Script script;
      script.us = [](std::string_view kernel, int64_t, std::string_view, bool) {
        return kernel == "listed" ? 10.0 : 5.0;
      };
      Ranks ranks;
      ranks.rank = i, ranks.size = 8, ranks.job = "test", ranks.limit_s = 60;
      const auto report = tune(kernels, script, options(), ranks);
      if (!report.ok()) _exit(1);
      FILE* out = std::fopen(files.back().c_str(), "w");
      std::fprintf(out, "%s %zu", report->plan.hash.c_str(), report->measured);
      std::fclose(out);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  std::set<std::string> hashes;
  size_t measured = 0;
  for (const std::string& name : files) {
    FILE* in = std::fopen(name.c_str(), "r");
    char hash[64];
    size_t races = 0;
    ASSERT_EQ(std::fscanf(in, "%63s %zu", hash, &races), 2);
    std::fclose(in);
    hashes.insert(hash);
    measured += races;
  }
  EXPECT_EQ(hashes.size(), 1u);
  EXPECT_EQ(measured, 12u) << "four classes, three batch sizes, each on one rank";
}

}  // namespace
}  // namespace gearshift
