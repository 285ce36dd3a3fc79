#include "store/schema.h"

#include <array>
#include <utility>

namespace gearshift {

namespace {

// migrations[v] leads from version v to v + 1. A step that has been released is never edited.
constexpr std::array migrations = {
    // 1: rows, with the environment they hold in written once for all its rows; work that a process has claimed.
    R"(CREATE TABLE environment (
  id INTEGER PRIMARY KEY,
  device TEXT NOT NULL, arch TEXT NOT NULL, cores INTEGER NOT NULL, memory_bytes INTEGER NOT NULL, limits TEXT NOT NULL,
  driver TEXT NOT NULL, runtime TEXT NOT NULL, libraries TEXT NOT NULL,
  UNIQUE (device, arch, cores, memory_bytes, limits, driver, runtime, libraries)
) STRICT;
CREATE TABLE entry (
  kind TEXT NOT NULL CHECK (kind IN ('measurement', 'proof', 'quarantine')),
  environment INTEGER NOT NULL REFERENCES environment (id),
  kernel TEXT NOT NULL, kernel_version INTEGER NOT NULL, tactic TEXT NOT NULL, layout TEXT NOT NULL, layer_class TEXT NOT NULL,
  dtype TEXT NOT NULL, mode TEXT NOT NULL, threads INTEGER NOT NULL, m_min INTEGER NOT NULL, m_max INTEGER NOT NULL,
  samples INTEGER NOT NULL, taken INTEGER NOT NULL, median_us REAL NOT NULL, p10_us REAL NOT NULL, p90_us REAL NOT NULL,
  worst_row REAL NOT NULL, tolerance REAL NOT NULL, reason TEXT NOT NULL, evidence TEXT NOT NULL,
  PRIMARY KEY (kind, environment, layer_class, kernel, kernel_version, tactic, layout, dtype, mode, threads, m_min, m_max)
) STRICT, WITHOUT ROWID;
CREATE TABLE claim (
  work TEXT PRIMARY KEY, host TEXT NOT NULL, process TEXT NOT NULL, taken INTEGER NOT NULL
) STRICT, WITHOUT ROWID;)",
    // 2: how certain a median is.
    "ALTER TABLE entry ADD COLUMN error_us REAL NOT NULL DEFAULT 0;"};

bool is_damage(int code) { return (code & 0xFF) == SQLITE_NOTADB || (code & 0xFF) == SQLITE_CORRUPT; }

// What an error says about the file. A lost race for the write-ahead log is a wait like any other.
SchemaState state_of(int code) {
  if (is_damage(code)) return SchemaState::damaged;
  const int primary = code & 0xFF;
  const bool busy = primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_PROTOCOL;
  return busy ? SchemaState::busy : SchemaState::closed;
}

// The first column of the first row; SQLITE_OK or the error.
int read_number(Connection& connection, const char* sql, int64_t& value) {
  Statement statement(connection.get(), sql);
  const int code = statement.step();
  if (code == SQLITE_ROW) return statement.column(0, value) ? SQLITE_OK : SQLITE_CORRUPT;
  return code == SQLITE_DONE ? SQLITE_CORRUPT : connection.error();
}

// REQUIRES: inside a transaction, so that all answers are of one moment: others may be creating the tables.
SchemaState state_inside(Connection& connection) {
  // Reads the header and the schema, which is where a cut or foreign file gives itself away.
  int64_t tables = 0, ours = 0, application = 0, version = 0;
  for (const auto& [sql, value] :
       {std::pair{"SELECT count(*) FROM sqlite_schema", &tables},
        std::pair{
            "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('environment', 'entry', 'claim')",
            &ours},
        std::pair{"PRAGMA application_id", &application}, std::pair{"PRAGMA user_version", &version}}) {
    if (const int code = read_number(connection, sql, *value); code != SQLITE_OK) return state_of(code);
  }
  if (tables == 0 && application == 0 && version == 0) return SchemaState::absent;
  if (application != store_application_id) return SchemaState::foreign;
  if (version > store_schema_version()) return SchemaState::newer;
  Statement check(connection.get(), "PRAGMA quick_check(1)");
  std::string verdict;
  if (check.step() != SQLITE_ROW) return state_of(connection.error());
  if (check.column(0, verdict) && verdict != "ok") return SchemaState::damaged;
  if (version < 1) return SchemaState::damaged;
  if (version < store_schema_version()) return SchemaState::older;
  // The tables that this version has, under their names.
  return ours == 3 ? SchemaState::current : SchemaState::damaged;
}

}  // namespace

int64_t store_schema_version() { return static_cast<int64_t>(migrations.size()); }

SchemaState schema_state(Connection& connection) {
  if (const int code = connection.execute("BEGIN"); code != SQLITE_OK) return state_of(code);
  const SchemaState state = state_inside(connection);
  connection.execute("ROLLBACK");
  return state;
}

int migrate(Connection& connection) {
  if (const int code = connection.execute("BEGIN IMMEDIATE"); code != SQLITE_OK) return code;
  // Somebody else may have done it while we waited.
  int64_t version = 0;
  int code = read_number(connection, "PRAGMA user_version", version);
  for (; code == SQLITE_OK && version < store_schema_version(); ++version) {
    code = connection.execute(migrations[static_cast<size_t>(version)]);
  }
  const std::string marks = "PRAGMA application_id = " + std::to_string(store_application_id) +
                            "; PRAGMA user_version = " + std::to_string(store_schema_version());
  if (code == SQLITE_OK) code = connection.execute(marks.c_str());
  if (code == SQLITE_OK) code = connection.execute("COMMIT");
  if (code != SQLITE_OK) connection.execute("ROLLBACK");
  return code;
}

}  // namespace gearshift
