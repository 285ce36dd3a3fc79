#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <map>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "store/bundle.h"
#include "store/entry.h"
#include "store/place.h"
#include "store/schema.h"

namespace gearshift {

namespace {

// Nobody waits for another process longer than a second.
constexpr int busy_ms = 900;
// A claim of another host's process, of which nothing else is known, counts this long.
constexpr int64_t claim_seconds = 600;

// A path as an SQLite URI: what has a meaning there is escaped.
std::string uri_of(const std::string& path, std::string_view parameters) {
  std::string uri = "file:";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/._-~+").find(c) != std::string_view::npos;
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri + std::string(parameters);
}

struct ColumnNames {
  std::vector<std::string> names;
  template <class T>
  void operator()(const char* field, const T&) {
    names.emplace_back(field);
  }
};
std::vector<std::string> columns_of(bool environment, bool key, bool values) {
  const StoreEntry entry;
  ColumnNames columns;
  if (environment) visit_environment(entry.environment, columns);
  if (key) visit_key(entry, columns);
  if (values) visit_values(entry, columns);
  return columns.names;
}

std::string placeholders(size_t count) {
  std::string marks;
  for (size_t i = 0; i < count; ++i) marks += i == 0 ? "?" : ", ?";
  return marks;
}

// The row that is stronger stays: stronger() of entry.h, in SQL.
std::string insert_sql() {
  std::vector<std::string> columns = {"kind", "environment"}, values = columns_of(false, false, true);
  for (std::string& column : columns_of(false, true, true)) columns.push_back(std::move(column));
  std::vector<std::string> assignments, theirs, ours;
  for (const std::string& value : values) {
    assignments.push_back(value + " = excluded." + value);
    theirs.push_back("excluded." + value);
    ours.push_back("entry." + value);
  }
  return fmt::format("INSERT INTO entry ({}) VALUES ({}) ON CONFLICT DO UPDATE SET {} WHERE ({}) > ({})",
                     join(columns, ", "), placeholders(columns.size()), join(assignments, ", "), join(theirs, ", "),
                     join(ours, ", "));
}

std::string select_sql() {
  return fmt::format("SELECT kind, {}, {} FROM entry JOIN environment ON entry.environment = environment.id",
                     join(columns_of(true, false, false), ", "), join(columns_of(false, true, true), ", "));
}

// A file that one process at a time holds locked, for as long as this lives. In a folder where none can be made nobody
// has to wait.
class Turn {
 public:
  explicit Turn(const std::string& file) : file_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    if (file_ < 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_ms);
    while (!(locked_ = flock(file_, LOCK_EX | LOCK_NB) == 0) && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (file_ >= 0) close(file_);
  }
  bool ours() const { return locked_ || file_ < 0; }

 private:
  int file_;
  bool locked_ = false;
};

}  // namespace

struct StoreFile::State {
  std::string path;
  bool network = false;
  Connection db;
  bool read_only = false;  // the file can be read and not written
  bool unwritable = false;
  bool refused = false;  // newer or foreign: not ours to touch
  std::vector<std::string> warnings;
  std::vector<StoreEntry> pending;  // rows that are not on disk
  std::string journal;
  int64_t bad_rows = 0;

  bool off() const { return path.empty() || path == "off"; }

  // Nothing that is written reaches others, now or later.
  bool alone() const { return off() || network || refused || unwritable; }

  void warn(const std::string& what) {
    const std::string line = fmt::format("store {}: {}", printable(path), what);
    if (std::find(warnings.begin(), warnings.end(), line) == warnings.end()) warnings.push_back(line);
  }

  // ---- opening ------------------------------------------------------------------------------------------------------

  bool exists() const {
    struct stat info {};
    return stat(path.c_str(), &info) == 0;
  }

  SchemaState connect(int flags, std::string_view parameters) {
    if (db.open(uri_of(path, parameters), flags) != SQLITE_OK) return SchemaState::closed;
    sqlite3_busy_timeout(db.get(), busy_ms);
    const SchemaState state = schema_state(db);
    read_only = sqlite3_db_readonly(db.get(), "main") == 1;
    return state;
  }

  // Whether rows can be read.
  bool open_to_read() {
    if (off() || refused) return false;
    if (db.is_open()) return true;
    if (!exists()) return false;
    constexpr std::string_view untouched = "?immutable=1";  // no lock, no shared memory, no write-ahead log
    SchemaState state = network ? SchemaState::closed : connect(SQLITE_OPEN_READWRITE, "");
    if (state == SchemaState::closed) {
      state = connect(SQLITE_OPEN_READONLY, untouched);
      read_only = true;
    }
    if (state == SchemaState::older && !read_only) state = mend();
    if (state == SchemaState::current) return true;
    say_why_not(state);
    db.close();
    return false;
  }

  void say_why_not(SchemaState state) {
    switch (state) {
      case SchemaState::newer:
        refused = true;
        return warn("written by a newer version of gearshift; ignored");
      case SchemaState::foreign:
        refused = true;
        return warn("not a store of gearshift; ignored");
      case SchemaState::damaged:
        return warn("damaged; ignored, and put aside when something is to be kept");
      case SchemaState::older:
        return warn("of an older version, and not writable; ignored");
      case SchemaState::busy:
      case SchemaState::closed:
        return warn("cannot be opened (" + db.message() + "); ignored");
      case SchemaState::current:
      case SchemaState::absent:
        return;
    }
  }

  // Whether rows can be written. Creates what is missing; a damaged file is put aside.
  bool open_to_write() {
    if (off() || network || refused || unwritable) return false;
    if (db.is_open() && !read_only) return true;
    if (!make_folders_for(path)) {
      unwritable = true;
      warn("its folder cannot be created; results are kept for this process only");
      return false;
    }
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_ms);
    SchemaState state = SchemaState::busy;
    // What looks closed may be a file that another process is just putting aside.
    int closed_left = 20;
    do {
      state = connect(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "");
      if (read_only && state != SchemaState::busy) break;
      if (state == SchemaState::current) return true;
      if (state == SchemaState::absent || state == SchemaState::older || state == SchemaState::damaged) {
        state = mend();
        if (state == SchemaState::current) return true;
        if (state == SchemaState::closed) break;
      }
      if (state == SchemaState::newer || state == SchemaState::foreign) break;
      if (state == SchemaState::closed && --closed_left == 0) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } while (std::chrono::steady_clock::now() < until);
    db.close();
    if (state == SchemaState::newer || state == SchemaState::foreign) {
      say_why_not(state);
    } else if (state != SchemaState::busy) {
      unwritable = true;
      warn("cannot be written; results are kept for this process only");
    }
    return false;
  }

  // Makes a store of a missing, older or damaged file. One process at a time does it; whoever comes late finds it done.
  // `current`: it is open; `busy`: to be looked at again; `closed`: it cannot be done here.
  SchemaState mend() {
    db.close();
    const Turn turn(path + ".lock");
    if (!turn.ours()) return SchemaState::busy;
    SchemaState state = connect(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, "");
    if (state == SchemaState::damaged) {
      db.close();
      return put_aside() ? SchemaState::busy : SchemaState::closed;
    }
    if (state != SchemaState::absent && state != SchemaState::older) return state;
    if (const int code = migrate(db); code != SQLITE_OK)
      return (code & 0xFF) == SQLITE_BUSY ? SchemaState::busy : SchemaState::closed;
    // The switch to write-ahead logging does not wait for readers by itself; a store without it works as well.
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_ms);
    while (db.execute("PRAGMA journal_mode = WAL") == SQLITE_BUSY && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return SchemaState::current;
  }

  bool put_aside() {
    std::string aside = path + ".damaged";
    for (int i = 1; std::filesystem::exists(aside) && i < 1000; ++i) aside = fmt::format("{}.damaged{}", path, i);
    // Its log goes first: beside a new file it would be replayed into that.
    for (const char* suffix : {"-wal", "-shm"}) unlink((path + suffix).c_str());
    if (rename(path.c_str(), aside.c_str()) != 0) return false;
    warn("damaged; put aside as " + printable(aside));
    return true;
  }

  // ---- rows ---------------------------------------------------------------------------------------------------------

  std::vector<StoreEntry> rows_of_file() {
    std::vector<StoreEntry> rows;
    if (!open_to_read()) return rows;
    Statement select(db.get(), select_sql());
    int step = SQLITE_DONE;
    while ((step = select.step()) == SQLITE_ROW) {
      StoreEntry entry;
      int column = 0;
      bool right = true;
      std::string kind;
      const auto take = [&](const char*, auto& value) { right = select.column(column++, value) && right; };
      take("kind", kind);
      visit_environment(entry.environment, take);
      visit_key(entry, take);
      visit_values(entry, take);
      const auto known = parse_entry_kind(kind);
      if (known) entry.kind = *known;
      right&& known&& why_bad(entry).empty() ? rows.push_back(std::move(entry)) : void(++bad_rows);
    }
    if (step != SQLITE_DONE) warn(fmt::format("cannot be read to its end ({})", db.message()));
    return rows;
  }

  std::vector<StoreEntry> rows_of_journals() {
    std::vector<StoreEntry> rows;
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(path + ".journals", ignored)) {
      const auto text = read_text_file(file.path().string());
      if (!text.ok()) continue;
      for (StoreEntry& row : read_journal(*text, &bad_rows)) rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<StoreEntry> rows() {
    bad_rows = 0;
    std::vector<StoreEntry> all = pending;
    if (!off()) {
      for (StoreEntry& row : rows_of_file()) all.push_back(std::move(row));
      for (StoreEntry& row : rows_of_journals()) all.push_back(std::move(row));
    }
    if (bad_rows > 0) warn(fmt::format("{} unreadable rows, which count as absent", bad_rows));
    return strongest(std::move(all));
  }

  // REQUIRES: inside a transaction.
  int insert(const std::vector<StoreEntry>& entries) {
    const std::vector<std::string> fields = columns_of(true, false, false);
    std::string same;
    for (const std::string& field : fields) same += (same.empty() ? "" : " AND ") + field + " = ?";
    Statement add(db.get(), fmt::format("INSERT OR IGNORE INTO environment ({}) VALUES ({})", join(fields, ", "),
                                        placeholders(fields.size())));
    Statement find(db.get(), "SELECT id FROM environment WHERE " + same);
    Statement insert(db.get(), insert_sql());
    if (!add.ok() || !find.ok() || !insert.ok()) return SQLITE_ERROR;
    for (const StoreEntry& entry : entries) {
      for (Statement* statement : {&add, &find}) {
        statement->reset();
        visit_environment(entry.environment, [&](const char*, const auto& value) { statement->bind(value); });
      }
      if (const int code = add.step(); code != SQLITE_DONE) return code;
      int64_t id = 0;
      if (const int code = find.step(); code != SQLITE_ROW || !find.column(0, id)) return code;
      insert.reset();
      insert.bind(std::string(name(entry.kind))).bind(id);
      const auto bind = [&](const char*, const auto& value) { insert.bind(value); };
      visit_key(entry, bind);
      visit_values(entry, bind);
      if (const int code = insert.step(); code != SQLITE_DONE) return code;
      find.reset();
    }
    return SQLITE_OK;
  }

  bool write_to_file() {
    if (!open_to_write()) return false;
    int code = db.execute("BEGIN IMMEDIATE");
    if (code == SQLITE_OK) {
      code = insert(pending);
      if (code == SQLITE_OK) code = db.execute("COMMIT");
      if (code != SQLITE_OK) db.execute("ROLLBACK");
    }
    if (code == SQLITE_OK) return true;
    if (code != SQLITE_BUSY) {
      warn(fmt::format("cannot be written ({}); results are kept for this process only", db.message()));
      db.close();  // another process may have put the file aside: the next write opens what is there then
    }
    return false;
  }

  bool write_to_journal() {
    if (journal.empty()) {
      const std::string file = fmt::format("{}.journals/{}-{}.jsonl", path, this_host(), this_process());
      if (!make_folders_for(file)) {
        warn("its journal cannot be created; results are kept for this process only");
        return false;
      }
      journal = file;
    }
    std::string text;
    for (const StoreEntry& row : pending) text += to_line(row) + "\n";
    const int file = ::open(journal.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    const bool written = file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    if (file >= 0) close(file);
    if (!written) warn("its journal cannot be written; results are kept for this process only");
    return written;
  }
};

StoreFile::StoreFile(std::string path, Disk disk) : state_(std::make_unique<State>()) {
  state_->path = std::move(path);
  state_->network = !state_->off() && (disk == Disk::network || (disk == Disk::ask && on_network_disk(state_->path)));
}
StoreFile::StoreFile(StoreFile&&) noexcept = default;
StoreFile& StoreFile::operator=(StoreFile&&) noexcept = default;
StoreFile::~StoreFile() {
  if (state_ && !state_->off() && !state_->pending.empty()) write({});
}

bool StoreFile::off() const { return state_->off(); }
const std::string& StoreFile::path() const { return state_->path; }
const std::vector<std::string>& StoreFile::warnings() const { return state_->warnings; }

std::vector<StoreEntry> StoreFile::entries() { return state_->rows(); }

Store StoreFile::read(const RunEnvironment& environment) { return store_of(state_->rows(), environment); }

bool StoreFile::write(std::vector<StoreEntry> rows) {
  for (StoreEntry& row : rows) {
    const std::string bad = why_bad(row);
    bad.empty() ? state_->pending.push_back(std::move(row)) : state_->warn("a row was left out: " + bad);
  }
  if (state_->off()) return false;
  if (state_->pending.empty()) return true;
  const bool written = state_->network ? state_->write_to_journal() : state_->write_to_file();
  if (written) state_->pending.clear();
  return written;
}

bool StoreFile::claim(const std::string& work) {
  // Without a file to share everyone does everything; one that is busy is asked again later.
  if (!state_->open_to_write()) return state_->alone();
  if (state_->db.execute("BEGIN IMMEDIATE") != SQLITE_OK) return false;
  const int64_t now = std::time(nullptr);
  bool taken = false;
  {
    Statement find(state_->db.get(), "SELECT host, process, taken FROM claim WHERE work = ?");
    std::string host, process;
    int64_t since = 0;
    if (find.ok() && find.bind(work).step() == SQLITE_ROW && find.column(0, host) && find.column(1, process) &&
        find.column(2, since)) {
      const bool ours = host == this_host() && process == this_process();
      const bool known = host == this_host();  // the process table says whether it is there
      taken = !ours && may_be_alive(host, process) && (known || now - since < claim_seconds);
    }
  }
  if (!taken) {
    Statement claim(state_->db.get(), "INSERT OR REPLACE INTO claim (work, host, process, taken) VALUES (?, ?, ?, ?)");
    if (claim.ok()) claim.bind(work).bind(this_host()).bind(this_process()).bind(now).step();
  }
  if (state_->db.execute("COMMIT") != SQLITE_OK) state_->db.execute("ROLLBACK");
  return !taken;
}

void StoreFile::release(const std::string& work) {
  if (!state_->db.is_open() || state_->read_only) return;
  Statement release(state_->db.get(), "DELETE FROM claim WHERE work = ? AND host = ? AND process = ?");
  if (release.ok()) release.bind(work).bind(this_host()).bind(this_process()).step();
}

StoreCheck StoreFile::check(const RunEnvironment& environment) {
  StoreCheck check;
  std::map<std::string, int64_t> elsewhere;
  for (const StoreEntry& row : entries()) {
    ++check.rows;
    if (row.environment == environment) {
      ++check.applying;
    } else {
      ++elsewhere[fmt::format("{}: {}", text(row.environment), difference(row.environment, environment))];
    }
  }
  check.bad_rows = state_->bad_rows;
  for (const auto& [place, count] : elsewhere) check.elsewhere.push_back(fmt::format("{} rows of {}", count, place));
  if (state_->db.is_open()) {
    Statement integrity(state_->db.get(), "PRAGMA integrity_check(5)");
    std::string line;
    while (integrity.step() == SQLITE_ROW && integrity.column(0, line)) {
      if (line != "ok") check.problems.push_back(line);
    }
  }
  for (const std::string& warning : warnings()) check.problems.push_back(warning);
  return check;
}

Result<int64_t> StoreFile::export_to(const std::string& file) {
  const std::vector<StoreEntry> rows = entries();
  GEARSHIFT_CHECK(write_text_file(file, bundle_of(rows)));
  return static_cast<int64_t>(rows.size());
}

namespace {

ErrorInfo not_written(const StoreFile& store) {
  ErrorInfo error;
  error.code = ErrorCode::runtime;
  error.subject = fmt::format("store {}", store.off() ? "(off)" : printable(store.path()));
  error.found = store.warnings().empty() ? "a file that is busy" : store.warnings().back();
  error.wanted = "a store that can be written";
  error.hint = "GEARSHIFT_STORE names another file";
  return error;
}

}  // namespace

Result<int64_t> StoreFile::import_from(const std::string& file) {
  GEARSHIFT_TRY(const std::string text, read_text_file(file));
  GEARSHIFT_TRY(std::vector<StoreEntry> rows, read_bundle(text, printable(file)));
  const auto count = static_cast<int64_t>(rows.size());
  if (off() || !write(std::move(rows))) return not_written(*this);
  return count;
}

Result<int64_t> StoreFile::merge_from(const std::string& store) {
  StoreFile other(store);
  std::vector<StoreEntry> rows = other.entries();
  struct stat info {};
  if (rows.empty() && (stat(store.c_str(), &info) != 0 || !other.warnings().empty())) {
    ErrorInfo error;
    error.code = ErrorCode::runtime;
    error.subject = printable(store);
    error.found = other.warnings().empty() ? "no such file" : other.warnings().front();
    error.wanted = "a store";
    return error;
  }
  const auto count = static_cast<int64_t>(rows.size());
  if (off() || !write(std::move(rows))) return not_written(*this);
  return count;
}

Result<int64_t> StoreFile::prune(const std::vector<StoreEntry>& useless) {
  if (!state_->open_to_write() || state_->db.execute("BEGIN IMMEDIATE") != SQLITE_OK) return not_written(*this);
  const int64_t before = state_->db.number("SELECT count(*) FROM entry", 0);
  std::vector<std::string> gone;
  for (const StoreEntry& row : useless) gone.push_back(key_text(row));
  std::sort(gone.begin(), gone.end());
  std::vector<StoreEntry> kept = state_->rows_of_file();
  kept.erase(std::remove_if(
                 kept.begin(), kept.end(),
                 [&](const StoreEntry& row) { return std::binary_search(gone.begin(), gone.end(), key_text(row)); }),
             kept.end());
  // Written anew, so that rows nobody can read go too.
  int code = state_->db.execute("DELETE FROM entry; DELETE FROM environment; DELETE FROM claim");
  if (code == SQLITE_OK) code = state_->insert(kept);
  if (code == SQLITE_OK) code = state_->db.execute("COMMIT");
  if (code != SQLITE_OK) {
    state_->db.execute("ROLLBACK");
    return not_written(*this);
  }
  state_->db.execute("VACUUM");
  return before - static_cast<int64_t>(kept.size());
}

}  // namespace gearshift
