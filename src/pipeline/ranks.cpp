#include "pipeline/ranks.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "store/bundle.h"
#include "store/place.h"

namespace gearshift {

namespace {

struct Launcher {
  const char *rank, *size;
  std::array<const char*, 3> job;  // variables that together name the job
};
constexpr std::array launchers = {
    Launcher{"RANK", "WORLD_SIZE", {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"}},
    Launcher{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", nullptr}},
    Launcher{"SLURM_PROCID", "SLURM_NTASKS", {"SLURM_JOB_ID", "SLURM_STEP_ID", nullptr}},
    Launcher{"PMI_RANK", "PMI_SIZE", {"PMI_JOBID", "PMI_ID", nullptr}},
};
constexpr int64_t most_ranks = 100'000;
// A file of this job that is older than its process by more than this was left behind by an earlier one.
constexpr int64_t leeway_s = 120;

ErrorInfo rank_error(std::string subject, std::string found, std::string wanted) {
  return {ErrorCode::runtime, std::move(subject), std::move(found), std::move(wanted), "", {}};
}

// Letters and digits of a job's name; others become '_', so that it names a folder.
std::string folder_name(const std::string& job) {
  std::string text;
  for (const char c : job) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
    text += plain ? c : '_';
  }
  return text.substr(0, 100);
}

bool is_fresh(const std::string& file, int64_t since) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 && info.st_mtime + leeway_s >= since;
}

std::string line_of(const LayerPlan& row) {
  std::string line = row.layer.name + ":";
  for (const PlannedRange& range : row.decision->ranges)
    line += fmt::format(" {}..{} {} {}", range.m_min, range.m_max, range.kernel->name, range.tactic);
  return line;
}

}  // namespace

Ranks ranks_of(const std::function<const char*(const char*)>& environment) {
  const auto number = [&](const char* variable) {
    const char* text = environment(variable);
    return text == nullptr ? std::nullopt : parse_integer(text);
  };
  for (const Launcher& launcher : launchers) {
    const auto rank = number(launcher.rank), size = number(launcher.size);
    if (!rank || !size || *size < 2 || *size > most_ranks || *rank < 0 || *rank >= *size) continue;
    // The script of a Slurm job has these variables as well, and is one process.
    const auto is_set = [&](const char* variable) { return environment(variable) != nullptr; };
    if (launcher.rank == launchers[2].rank && is_set("SLURM_JOB_ID") && !is_set("SLURM_STEP_ID")) continue;
    Ranks ranks;
    ranks.rank = static_cast<int>(*rank);
    ranks.size = static_cast<int>(*size);
    ranks.job = std::to_string(*size);
    bool named = false;
    for (const char* variable : launcher.job) {
      const char* text = variable == nullptr ? nullptr : environment(variable);
      if (text == nullptr) continue;
      ranks.job += std::string("-") + text;
      named = true;
    }
    // A launcher that names no job is at least our common parent.
    if (!named) ranks.job += "-" + this_host() + "-" + std::to_string(getppid());
    return ranks;
  }
  return {};
}

Result<std::vector<std::string>> exchange(const Ranks& ranks, const std::string& store_path, const std::string& topic,
                                          const std::string& text) {
  static const int64_t started = std::time(nullptr);
  const std::string folder = fmt::format("{}.ranks/{}", store_path, folder_name(ranks.job));
  const auto file_of = [&](int rank) { return fmt::format("{}/{}.{}", folder, topic, rank); };
  if (!make_folders_for(file_of(0))) {
    return rank_error(printable(folder), "a folder that cannot be created", "one that all ranks can write");
  }
  GEARSHIFT_CHECK(write_text_file(file_of(ranks.rank), text));
  std::vector<std::string> texts(static_cast<size_t>(ranks.size));
  std::vector<int> waiting;
  for (int rank = 0; rank < ranks.size; ++rank) waiting.push_back(rank);
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(ranks.limit_s);
  while (!waiting.empty()) {
    std::vector<int> missing;
    for (const int rank : waiting) {
      auto read = is_fresh(file_of(rank), started) ? read_text_file(file_of(rank)) : Result<std::string>(ErrorInfo{});
      read.ok() ? void(texts[static_cast<size_t>(rank)] = *std::move(read)) : missing.push_back(rank);
    }
    waiting = std::move(missing);
    if (waiting.empty()) break;
    if (std::chrono::steady_clock::now() > until) {
      return rank_error(fmt::format("rank {} of {}", waiting.front(), ranks.size),
                        fmt::format("no {} after {:g} s", topic, ranks.limit_s),
                        "all ranks of the job at the same point");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return texts;
}

std::vector<MeasuredTime> slowest(const std::vector<std::vector<StoreEntry>>& by_rank) {
  std::map<std::tuple<std::string, int, std::string, std::string, std::string, std::string, std::string, int, int64_t>,
           MeasuredTime>
      times;
  for (const auto& rows : by_rank) {
    for (const StoreEntry& row : rows) {
      if (row.kind != EntryKind::measurement) continue;
      const MeasuredTime time{row.kernel,
                              static_cast<int>(row.kernel_version),
                              row.tactic,
                              row.layout,
                              row.layer_class,
                              row.dtype,
                              row.mode,
                              static_cast<int>(row.threads),
                              row.m_min,
                              row.median_us,
                              row.p10_us,
                              row.p90_us,
                              static_cast<int>(row.samples),
                              row.error_us};
      const auto [found, fresh] = times.try_emplace({time.kernel, time.kernel_version, time.tactic, time.layout,
                                                     time.layer_class, time.dtype, time.mode, time.threads, time.m},
                                                    time);
      if (!fresh && time.median_us > found->second.median_us) found->second = time;
    }
  }
  std::vector<MeasuredTime> all;
  for (auto& [key, time] : times) all.push_back(std::move(time));
  return all;
}

Result<void> check_agreement(const std::vector<std::string>& plans) {
  for (size_t rank = 1; rank < plans.size(); ++rank) {
    if (plans[rank] == plans[0]) continue;
    ErrorInfo error =
        rank_error(fmt::format("the plans of ranks 0 and {}", rank), "different ones", "one plan on all ranks");
    error.hint = "the same model, options, build and plugins everywhere";
    const std::vector<std::string> ours = split(plans[0], '\n'), theirs = split(plans[rank], '\n');
    constexpr size_t shown = 10;
    for (size_t i = 0; i < std::max(ours.size(), theirs.size()) && error.details.size() < shown; ++i) {
      const std::string a = i < ours.size() ? ours[i] : "nothing", b = i < theirs.size() ? theirs[i] : "nothing";
      if (a != b) error.details.push_back(fmt::format("rank 0: {}; rank {}: {}", printable(a), rank, printable(b)));
    }
    return error;
  }
  return {};
}

// Rows go around, the slowest rank decides, and every rank sees that all have the same plan.
Result<void> agree(const Ranks& ranks, Session& session, const Registry& registry) {
  if (session.file().off()) {
    return ErrorInfo{
        ErrorCode::usage, "GEARSHIFT_STORE", "off", fmt::format("a store that the {} ranks share", ranks.size), "", {}};
  }
  std::vector<StoreEntry> mine;
  for (StoreEntry& row : session.file().entries()) {
    if (row.environment == session.environment()) mine.push_back(std::move(row));
  }
  GEARSHIFT_TRY(const std::vector<std::string> bundles,
                exchange(ranks, session.file().path(), "rows", bundle_of(mine)));
  std::vector<std::vector<StoreEntry>> by_rank;
  std::vector<StoreEntry> quarantines;
  for (size_t rank = 0; rank < bundles.size(); ++rank) {
    GEARSHIFT_TRY(std::vector<StoreEntry> rows, read_bundle(bundles[rank], fmt::format("rows of rank {}", rank)));
    for (StoreEntry& row : rows) {
      row.environment = session.environment();  // one plan for all, whatever the devices
      if (row.kind == EntryKind::quarantine) quarantines.push_back(row);
    }
    by_rank.push_back(std::move(rows));
  }
  session.keep(std::move(quarantines));
  session.store.times = slowest(by_rank);
  GEARSHIFT_TRY(const Plan plan, session.plan(registry));
  std::string lines = plan.hash + "\n";
  for (const LayerPlan& row : plan.layers) lines += line_of(row) + "\n";
  GEARSHIFT_TRY(const std::vector<std::string> plans, exchange(ranks, session.file().path(), "plan", lines));
  return check_agreement(plans);
}

}  // namespace gearshift
