#include <sqlite3.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "rows.h"
#include "store/bundle.h"
#include "store/place.h"
#include "store/schema.h"

namespace gearshift {
namespace {

class StoreFileTest : public StoreFolder {
 protected:
  void put(const std::string& name, const std::string& bytes) const {
    std::ofstream(file(name), std::ios::binary) << bytes;
  }
  // Opens a fresh view of the file and returns how many rows are there.
  size_t rows(std::string* warning = nullptr) const {
    StoreFile store(file());
    const size_t count = store.entries().size();
    if (warning != nullptr) *warning = store.warnings().empty() ? "" : store.warnings().front();
    return count;
  }
  void sql(const std::string& text) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    sqlite3_exec(db, text.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error, nullptr) << error;
    sqlite3_free(error);
    sqlite3_close(db);
  }
};

TEST_F(StoreFileTest, RowsOutliveTheProcess) {
  const std::vector<StoreEntry> all =
      strongest({row_of(EntryKind::measurement), row_of(EntryKind::proof), row_of(EntryKind::quarantine)});
  {
    StoreFile store(file("deep/er/store.sqlite"));
    EXPECT_TRUE(store.entries().empty());
    EXPECT_FALSE(std::filesystem::exists(file("deep")));  // reading creates nothing
    EXPECT_TRUE(store.write(all));
    EXPECT_TRUE(store.warnings().empty()) << store.warnings().front();
  }
  StoreFile store(file("deep/er/store.sqlite"));
  EXPECT_EQ(store.entries(), all);
  const Store here = store.read(all.front().environment);
  ASSERT_EQ(here.times.size(), 1u);
  EXPECT_EQ(here.times[0].median_us, 12.25);
  EXPECT_EQ(here.proofs.size(), 1u);
  ASSERT_EQ(here.quarantines.size(), 1u);
  EXPECT_EQ(here.quarantines[0].reason, "row 3 is off");
}

TEST_F(StoreFileTest, PathsWithSpecialCharacters) {
  const std::string odd = file("a?b#c%20 d.sqlite");
  EXPECT_TRUE(StoreFile(odd).write({row_of(EntryKind::proof)}));
  EXPECT_TRUE(std::filesystem::exists(odd));
  EXPECT_EQ(StoreFile(odd).entries().size(), 1u);
}

TEST_F(StoreFileTest, Case65AStrongerMeasurementReplacesAWeakerOneNeverTheReverse) {
  StoreEntry careful = row_of(EntryKind::measurement), sloppy = careful;
  sloppy.samples = 3, sloppy.p10_us = sloppy.median_us = 9, sloppy.taken += 1000;
  for (const auto& order : {std::vector{careful, sloppy}, std::vector{sloppy, careful}}) {
    std::filesystem::remove(file());
    StoreFile store(file());
    for (const StoreEntry& row : order) EXPECT_TRUE(store.write({row}));
    EXPECT_EQ(StoreFile(file()).entries(), (std::vector{careful}));
  }
}

TEST_F(StoreFileTest, OffKeepsRowsInTheProcessOnly) {
  StoreFile store("off");
  EXPECT_FALSE(store.write({row_of(EntryKind::proof)}));
  EXPECT_EQ(store.entries().size(), 1u);
  EXPECT_TRUE(store.warnings().empty());
  EXPECT_TRUE(store.claim("work"));
  EXPECT_FALSE(store.import_from(file("b")).ok());
}

TEST_F(StoreFileTest, MergingIsIdempotentAndItsOrderDoesNotMatter) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<StoreEntry> a, b;
  for (int i = 0; i < 60; ++i) (i % 2 == 0 ? a : b).push_back(random_row(random));
  StoreFile(file("a")).write(a);
  StoreFile(file("b")).write(b);
  std::vector<StoreEntry> both = a;
  both.insert(both.end(), b.begin(), b.end());
  const std::vector<StoreEntry> expected = strongest(both);
  ASSERT_TRUE(StoreFile(file("ab")).merge_from(file("a")).ok());
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(StoreFile(file("ab")).merge_from(file("b")).ok());
  for (const char* from : {"b", "a", "b"}) ASSERT_TRUE(StoreFile(file("ba")).merge_from(file(from)).ok());
  EXPECT_EQ(StoreFile(file("ab")).entries(), expected);
  EXPECT_EQ(StoreFile(file("ba")).entries(), expected);
  // The same through bundles.
  ASSERT_TRUE(StoreFile(file("a")).export_to(file("a.jsonl")).ok());
  ASSERT_TRUE(StoreFile(file("b")).export_to(file("b.jsonl")).ok());
  for (const char* from : {"b.jsonl", "a.jsonl", "a.jsonl"})
    ASSERT_TRUE(StoreFile(file("c")).import_from(file(from)).ok());
  EXPECT_EQ(StoreFile(file("c")).entries(), expected);
}

TEST_F(StoreFileTest, BadBundlesLeaveTheStoreAsItWas) {
  StoreFile store(file());
  store.write({row_of(EntryKind::proof)});
  std::string bundle = bundle_of({row_of(EntryKind::measurement)});
  put("cut", bundle.substr(0, bundle.size() / 2));
  EXPECT_NE(store.import_from(file("cut")).error().message().find("cut short"), std::string::npos);
  EXPECT_NE(store.import_from(file("none")).error().message().find("none"), std::string::npos);
  EXPECT_NE(store.import_from(folder_).error().message().find("no regular file"), std::string::npos);
  EXPECT_FALSE(store.merge_from(file("none")).ok());
  EXPECT_FALSE(store.merge_from(file("cut")).ok());
  EXPECT_EQ(rows(), 1u);
}

TEST_F(StoreFileTest, PruneRemovesWhatIsNamed) {
  StoreFile store(file());
  store.write({row_of(EntryKind::proof, "a"), row_of(EntryKind::proof, "b"), row_of(EntryKind::measurement, "a")});
  const auto removed = store.prune({row_of(EntryKind::proof, "a")});
  ASSERT_TRUE(removed.ok());
  EXPECT_EQ(*removed, 1);
  EXPECT_EQ(rows(), 2u);
}

// ---- case 70: what may be found in the place of a store
// ---------------------------------------------------------------

TEST_F(StoreFileTest, Case70DamagedFilesAreAWarningAndAMissAndAreReplaced) {
  StoreFile(file("good")).write({row_of(EntryKind::proof), row_of(EntryKind::measurement)});
  const std::string good = *read_text_file(file("good"));
  for (const std::string& content : {std::string("not a database, but long enough to hold a header"),
                                     std::string(8192, '\xff'), good.substr(0, good.size() / 2), good.substr(0, 700)}) {
    std::filesystem::remove(file());
    put("store.sqlite", content);
    std::string warning;
    EXPECT_EQ(rows(&warning), 0u);
    EXPECT_NE(warning.find("damaged"), std::string::npos) << warning;
    StoreFile store(file());
    EXPECT_TRUE(store.write({row_of(EntryKind::quarantine)}));
    EXPECT_EQ(rows(&warning), 1u);
    EXPECT_EQ(warning, "");
  }
  EXPECT_TRUE(std::filesystem::exists(file("store.sqlite.damaged")));  // nothing is thrown away
}

TEST_F(StoreFileTest, Case70AnEmptyFileBecomesAStore) {
  put("store.sqlite", "");
  std::string warning;
  EXPECT_EQ(rows(&warning), 0u);
  EXPECT_EQ(warning, "");
  EXPECT_TRUE(StoreFile(file()).write({row_of(EntryKind::proof)}));
  EXPECT_EQ(rows(), 1u);
}

TEST_F(StoreFileTest, Case70RandomDamageNeverEndsInAnError) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<StoreEntry> many;
  for (int i = 0; i < 50; ++i) many.push_back(random_row(random));
  StoreFile(file("good")).write(many);
  const std::string good = *read_text_file(file("good"));
  for (int round = 0; round < 60; ++round) {
    std::string bytes = good;
    for (int i = 0; i < 40; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 3 == 0) bytes.resize(random() % bytes.size());
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file() + suffix);
    put("store.sqlite", bytes);
    StoreFile store(file());
    for (const StoreEntry& row : store.entries()) EXPECT_EQ(why_bad(row), "");
    store.check({});
    store.write({row_of(EntryKind::quarantine, "new")});
    const std::vector<StoreEntry> after = store.entries();
    EXPECT_TRUE(std::any_of(after.begin(), after.end(), [](const StoreEntry& row) { return row.kernel == "new"; }));
  }
}

TEST_F(StoreFileTest, Case70BadRowsCountAsAbsent) {
  StoreFile(file()).write({row_of(EntryKind::measurement, "a"), row_of(EntryKind::measurement, "b")});
  sql("UPDATE entry SET median_us = -1 WHERE kernel = 'a'");
  std::string warning;
  EXPECT_EQ(rows(&warning), 1u);
  EXPECT_NE(warning.find("1 unreadable"), std::string::npos) << warning;
  StoreFile store(file());
  EXPECT_EQ(*store.prune({}), 1);
  EXPECT_EQ(rows(&warning), 1u);
  EXPECT_EQ(warning, "");
}

TEST_F(StoreFileTest, NewerAndForeignFilesAreLeftAlone) {
  StoreFile(file()).write({row_of(EntryKind::proof)});
  sql("PRAGMA user_version = 99");
  std::string warning;
  EXPECT_EQ(rows(&warning), 0u);
  EXPECT_NE(warning.find("newer version"), std::string::npos) << warning;
  StoreFile newer(file());
  EXPECT_FALSE(newer.write({row_of(EntryKind::quarantine)}));
  EXPECT_EQ(newer.entries().size(), 1u);  // kept for the process
  sql("PRAGMA user_version = " + std::to_string(store_schema_version()));
  EXPECT_EQ(rows(), 1u);

  std::filesystem::remove(file());
  sql("CREATE TABLE theirs (x)");
  EXPECT_EQ(rows(&warning), 0u);
  EXPECT_NE(warning.find("not a store"), std::string::npos) << warning;
  EXPECT_FALSE(StoreFile(file()).write({row_of(EntryKind::proof)}));
  sql("SELECT x FROM theirs");
}

TEST_F(StoreFileTest, AFileOfTheFirstVersionIsUpgradedAndKeepsItsRows) {
  StoreEntry row = row_of(EntryKind::measurement);
  row.error_us = 0.25;
  StoreFile(file()).write({row, row_of(EntryKind::proof)});
  sql("ALTER TABLE entry DROP COLUMN error_us; PRAGMA user_version = 1");
  row.error_us = 0;
  std::string warning;
  EXPECT_EQ(rows(&warning), 2u);
  EXPECT_EQ(warning, "");
  StoreFile store(file());
  EXPECT_EQ(store.entries()[0], row) << "what it did not know is not known";
  row.samples += 1, row.error_us = 0.125;
  EXPECT_TRUE(store.write({row}));
  EXPECT_EQ(StoreFile(file()).entries()[0], row);
}

TEST_F(StoreFileTest, Case70PlacesThatCannotBeWritten) {
  put("file", "");
  for (const std::string& path :
       {file("file/below/store.sqlite"), std::string("/proc/gearshift/store.sqlite"), folder_}) {
    StoreFile store(path);
    EXPECT_TRUE(store.entries().empty());
    EXPECT_FALSE(store.write({row_of(EntryKind::proof)}));
    ASSERT_FALSE(store.warnings().empty()) << path;
    EXPECT_NE(store.warnings().back().find("this process only"), std::string::npos) << store.warnings().back();
    EXPECT_EQ(store.entries().size(), 1u);
    EXPECT_TRUE(store.claim("work"));
  }
}

TEST_F(StoreFileTest, Case70AFolderThatMayOnlyBeRead) {
  StoreFile(file()).write({row_of(EntryKind::proof)});
  std::filesystem::permissions(file(), std::filesystem::perms(0444));
  std::filesystem::permissions(folder_, std::filesystem::perms(0555));
  const pid_t child = fork();
  if (child == 0) {
    // The superuser is allowed everything: become nobody.
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(3);
    StoreFile store(file());
    const bool read = store.entries().size() == 1;
    const bool refused = !store.write({row_of(EntryKind::quarantine)}) && !store.warnings().empty();
    _exit(read && refused && store.entries().size() == 2 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(StoreFileTest, NetworkDisksGetAJournalPerProcess) {
  StoreFile(file(), Disk::local).write({row_of(EntryKind::proof)});
  const std::string before = *read_text_file(file());
  StoreFile store(file(), Disk::network);
  EXPECT_EQ(store.entries().size(), 1u);
  EXPECT_TRUE(store.write({row_of(EntryKind::measurement)}));
  EXPECT_TRUE(store.write({row_of(EntryKind::quarantine)}));
  EXPECT_EQ(*read_text_file(file()), before);
  EXPECT_EQ(StoreFile(file(), Disk::network).entries().size(), 3u);
  // A process that died in the middle of a line.
  put("store.sqlite.journals/other-1.jsonl", to_line(row_of(EntryKind::proof, "b")) + "\n{\"kind\":\"pro");
  StoreFile again(file(), Disk::network);
  EXPECT_EQ(again.entries().size(), 4u);
  EXPECT_NE(again.warnings().front().find("1 unreadable"), std::string::npos);
  // Journals can be folded into a store on a local disk.
  EXPECT_TRUE(StoreFile(file("local")).merge_from(file()).ok());
  EXPECT_EQ(StoreFile(file("local")).entries().size(), 4u);
}

// ---- several processes ----------------------------------------------------------------------------------------------

// Runs `work` in `count` processes at once; returns how many of them ended with 0.
int in_processes(int count, const std::function<bool(int)>& work) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(work(i) ? 0 : 1);
    children.push_back(child);
  }
  int right = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    right += WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  return right;
}

TEST_F(StoreFileTest, Case70SixteenProcessesOneColdStore) {
  for (const bool damaged : {false, true}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    if (damaged) put("store.sqlite", "this is no database at all, whoever reads it");
    // A write that would wait too long comes back; it is tried again with the next one.
    const auto write = [&](int i) {
      StoreFile store(file());
      bool written = store.write({row_of(EntryKind::proof, "kernel" + std::to_string(i))});
      for (int attempt = 0; attempt < 50 && !written; ++attempt) written = store.write({});
      return written;
    };
    EXPECT_EQ(in_processes(16, write), 16);
    std::string warning;
    EXPECT_EQ(rows(&warning), 16u) << warning;
  }
}

TEST_F(StoreFileTest, Case70OneProcessDoesTheWork) {
  EXPECT_EQ(in_processes(16,
                         [&](int) {
                           StoreFile store(file());
                           const bool ours = store.claim("race");
                           // Held until everybody has asked: a process that is gone does not count.
                           std::this_thread::sleep_for(std::chrono::seconds(2));
                           return ours;
                         }),
            1);
  StoreFile store(file());
  EXPECT_TRUE(store.claim("race")) << "the claim of a dead process";
  EXPECT_TRUE(store.claim("race")) << "our own";
  EXPECT_EQ(in_processes(1, [&](int) { return !StoreFile(file()).claim("race"); }), 1);
  store.release("race");
  EXPECT_EQ(in_processes(1, [&](int) { return StoreFile(file()).claim("race"); }), 1);
}

TEST_F(StoreFileTest, KilledAtAnyMomentTheStoreOpensAndFinishedRowsAreThere) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::set<std::string> reported;
  for (int round = 0; round < 200; ++round) {
    int pipe_of[2];
    ASSERT_EQ(pipe(pipe_of), 0);
    const pid_t child = fork();
    if (child == 0) {
      StoreFile store(file());
      for (int i = 0;; ++i) {
        const std::string kernel = std::to_string(round) + "_" + std::to_string(i) + "\n";
        if (!store.write({row_of(EntryKind::proof, kernel.substr(0, kernel.size() - 1))})) _exit(1);
        if (write(pipe_of[1], kernel.data(), kernel.size()) < 0) _exit(1);
      }
    }
    close(pipe_of[1]);
    std::string text;
    char bytes[4096];
    // Every second child lives until its first row is reported, however busy the machine is.
    if (round % 2 == 1) text.append(bytes, static_cast<size_t>(std::max<ssize_t>(read(pipe_of[0], bytes, 1), 0)));
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 12000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (ssize_t some; (some = read(pipe_of[0], bytes, sizeof bytes)) > 0;)
      text.append(bytes, static_cast<size_t>(some));
    close(pipe_of[0]);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) reported.insert(line);
    if (round % 20 != 19) continue;
    StoreFile store(file());
    std::set<std::string> found;
    for (const StoreEntry& row : store.entries()) found.insert(row.kernel);
    ASSERT_TRUE(store.warnings().empty()) << store.warnings().front();
    for (const std::string& kernel : reported) ASSERT_EQ(found.count(kernel), 1u) << kernel;
  }
  EXPECT_FALSE(reported.empty());
}

TEST(StorePlaces, DefaultFollowsXdg) {
  EXPECT_EQ(default_store_path("/state", "/home/a"), "/state/gearshift/store.sqlite");
  EXPECT_EQ(default_store_path(nullptr, "/home/a"), "/home/a/.local/state/gearshift/store.sqlite");
  EXPECT_EQ(default_store_path("relative", "/home/a"), "/home/a/.local/state/gearshift/store.sqlite");
  EXPECT_EQ(default_store_path("", nullptr), "off");
}

TEST(StorePlaces, ProcessesAreToldApart) {
  EXPECT_TRUE(may_be_alive(this_host(), this_process()));
  EXPECT_FALSE(may_be_alive(this_host(), std::to_string(getpid()) + "-1"));
  EXPECT_FALSE(may_be_alive(this_host(), "nonsense"));
  EXPECT_TRUE(may_be_alive("another", "1-1"));
}

}  // namespace
}  // namespace gearshift
