// The tables of a store's file, their version, and the steps from each version to the next.
#pragma once

#include "store/sqlite.h"

namespace gearshift {

inline constexpr int64_t store_application_id = 0x47534654;  // "GSFT"
// What files are written with; a larger one is another program's business.
int64_t store_schema_version();

enum class SchemaState {
  current,
  absent,  // an empty file
  older,   // migrate() makes it current
  newer,
  foreign,  // another program's database
  damaged,
  busy,    // another process is at work on it
  closed   // cannot be looked at: permissions, a folder in its place
};
SchemaState schema_state(Connection& connection);
// Creates or upgrades, in one transaction that other processes see whole or not at all. SQLITE_OK or the error.
int migrate(Connection& connection);

}  // namespace gearshift
