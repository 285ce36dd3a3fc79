#include "pipeline/ranks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

namespace gearshift {
namespace {

Ranks ranks_from(std::map<std::string, std::string> variables) {
  return ranks_of([&](const char* name) { return variables.count(name) == 0 ? nullptr : variables[name].c_str(); });
}

TEST(Ranks, EveryLauncherIsUnderstood) {
  EXPECT_EQ(ranks_from({}).size, 1);
  const Ranks torch =
      ranks_from({{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(torch.rank, 3);
  EXPECT_EQ(torch.size, 8);
  EXPECT_EQ(torch.job, "8-10.0.0.1-29500");
  EXPECT_EQ(ranks_from({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_NAMESPACE", "n"}}).job,
            "2-n");
  EXPECT_EQ(
      ranks_from({{"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "0"}}).job,
      "8-12-0");
  EXPECT_EQ(ranks_from({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}).rank, 1);
  EXPECT_FALSE(ranks_from({{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}}).job.empty());
}

TEST(Ranks, VariablesThatMakeNoSenseAreOneProcess) {
  for (const auto& [rank, size] :
       {std::pair("8", "8"), {"-1", "8"}, {"x", "8"}, {"0", "1"}, {"0", ""}, {"0", "99999999999"}})
    EXPECT_EQ(ranks_from({{"RANK", rank}, {"WORLD_SIZE", size}}).size, 1) << rank << " of " << size;
}

TEST(Ranks, TheScriptOfASlurmJobIsOneProcess) {
  EXPECT_EQ(ranks_from({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "12"}}).size, 1);
}

TEST(Ranks, EachItemHasOneOwner) {
  for (size_t item = 0; item < 20; ++item) {
    int owners = 0;
    for (int rank = 0; rank < 8; ++rank) {
      Ranks ranks;
      ranks.rank = rank, ranks.size = 8;
      owners += ranks.ours(item);
    }
    EXPECT_EQ(owners, 1);
  }
}

TEST(Ranks, TheSlowestRankDecides) {
  StoreEntry row;
  row.kernel = "k", row.layer_class = "c", row.mode = "eager", row.m_min = row.m_max = 1;
  row.median_us = 10, row.samples = 25;
  StoreEntry slower = row, other = row;
  slower.median_us = 12;
  other.kernel = "other", other.median_us = 3;
  for (const auto& order : {std::vector{std::vector{row}, std::vector{slower, other}},
                            std::vector{std::vector{other, slower}, std::vector{row}}}) {
    const std::vector<MeasuredTime> times = slowest(order);
    ASSERT_EQ(times.size(), 2u);
    EXPECT_EQ(times[0].median_us, 12);
    EXPECT_EQ(times[1].kernel, "other");
  }
}

TEST(Ranks, PlansThatDifferAreAnErrorWithTheRows) {
  EXPECT_TRUE(check_agreement({"h\na: x\n", "h\na: x\n"}).ok());
  const auto differ = check_agreement({"h\na: x\nb: y\n", "h\na: x\nb: y\n", "i\na: x\nb: z\n"});
  ASSERT_FALSE(differ.ok());
  EXPECT_EQ(differ.error().subject, "the plans of ranks 0 and 2");
  ASSERT_EQ(differ.error().details.size(), 2u);
  EXPECT_EQ(differ.error().details[1], "rank 0: b: y; rank 2: b: z");
}

TEST(Ranks, ARankThatDoesNotAnswerIsNamed) {
  const std::string folder = testing::TempDir() + "/ranks_" + std::to_string(getpid());
  Ranks ranks;
  ranks.size = 2, ranks.job = "j", ranks.limit_s = 0.05;
  const auto alone = exchange(ranks, folder + "/store.sqlite", "rows", "mine");
  ASSERT_FALSE(alone.ok());
  EXPECT_NE(alone.error().message().find("rank 1 of 2"), std::string::npos) << alone.error().message();
  ranks.limit_s = 60;
  std::thread other([&] {
    Ranks second = ranks;
    second.rank = 1;
    EXPECT_EQ(*exchange(second, folder + "/store.sqlite", "rows", "yours"),
              (std::vector<std::string>{"mine", "yours"}));
  });
  EXPECT_EQ(*exchange(ranks, folder + "/store.sqlite", "rows", "mine"), (std::vector<std::string>{"mine", "yours"}));
  other.join();
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gearshift
