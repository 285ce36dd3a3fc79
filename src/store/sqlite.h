// SQLite with owners: a connection and a statement that close themselves. Errors stay SQLite's codes; who calls
// decides.
#pragma once

#include <sqlite3.h>

#include <string>
#include <string_view>

namespace gearshift {

class Statement {
 public:
  Statement(sqlite3* db, const std::string& sql) {
    if (db != nullptr) sqlite3_prepare_v2(db, sql.c_str(), static_cast<int>(sql.size()), &statement_, nullptr);
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  bool ok() const { return statement_ != nullptr; }
  // Parameters in order, from the first.
  Statement& bind(const std::string& value) {
    sqlite3_bind_text(statement_, ++parameters_, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
    return *this;
  }
  Statement& bind(int64_t value) {
    sqlite3_bind_int64(statement_, ++parameters_, value);
    return *this;
  }
  Statement& bind(double value) {
    sqlite3_bind_double(statement_, ++parameters_, value);
    return *this;
  }
  // SQLITE_ROW, SQLITE_DONE or an error.
  int step() { return statement_ == nullptr ? SQLITE_ERROR : sqlite3_step(statement_); }
  void reset() {
    sqlite3_reset(statement_);
    parameters_ = 0;
  }

  // False: the column holds another type.
  bool column(int i, std::string& value) const {
    if (sqlite3_column_type(statement_, i) != SQLITE_TEXT) return false;
    value.assign(reinterpret_cast<const char*>(sqlite3_column_text(statement_, i)),
                 static_cast<size_t>(sqlite3_column_bytes(statement_, i)));
    return true;
  }
  bool column(int i, int64_t& value) const {
    value = sqlite3_column_int64(statement_, i);
    return sqlite3_column_type(statement_, i) == SQLITE_INTEGER;
  }
  bool column(int i, double& value) const {
    value = sqlite3_column_double(statement_, i);
    return sqlite3_column_type(statement_, i) == SQLITE_FLOAT;
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  int parameters_ = 0;
};

class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(); }

  // SQLITE_OK or the error; then nothing is open.
  int open(const std::string& uri, int flags) {
    close();
    const int code = sqlite3_open_v2(uri.c_str(), &db_, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, nullptr);
    if (code != SQLITE_OK) close();
    return code;
  }
  void close() {
    sqlite3_close_v2(db_);
    db_ = nullptr;
  }
  bool is_open() const { return db_ != nullptr; }
  sqlite3* get() const { return db_; }
  int execute(const char* sql) {
    return db_ == nullptr ? SQLITE_ERROR : sqlite3_exec(db_, sql, nullptr, nullptr, nullptr);
  }
  // Of the last call that failed.
  int error() const { return db_ == nullptr ? SQLITE_CANTOPEN : sqlite3_errcode(db_); }
  std::string message() const { return db_ == nullptr ? "not open" : sqlite3_errmsg(db_); }
  // The first column of the first row; `otherwise` where there is none.
  int64_t number(const std::string& sql, int64_t otherwise) const {
    Statement statement(db_, sql);
    int64_t value = otherwise;
    if (statement.step() == SQLITE_ROW) statement.column(0, value);
    return value;
  }

 private:
  sqlite3* db_ = nullptr;
};

}  // namespace gearshift
