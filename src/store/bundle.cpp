#include "store/bundle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "store/entry.h"

namespace gearshift {

namespace {

constexpr std::string_view bundle_schema = "gearshift.bundle/1";
// 0 where a row does not have it.
constexpr std::string_view not_in_the_first_bundles = "error_us";
constexpr off_t largest_bundle = off_t{1} << 30;

ErrorInfo bundle_error(const std::string& subject, std::string found, std::string wanted) {
  ErrorInfo error;
  error.code = ErrorCode::runtime;
  error.subject = subject;
  error.found = std::move(found);
  error.wanted = std::move(wanted);
  return error;
}

std::string quoted_json(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

struct LineWriter {
  std::string line = "{";
  void add(std::string_view field, std::string_view value) {
    if (line.size() > 1) line += ',';
    line += fmt::format("\"{}\":{}", field, value);
  }
  void operator()(const char* field, const std::string& value) { add(field, quoted_json(value)); }
  void operator()(const char* field, int64_t value) { add(field, std::to_string(value)); }
  // Shortest text that reads back as the same number.
  void operator()(const char* field, double value) { add(field, fmt::format("{}", value)); }
};

struct LineReader {
  const Json& row;
  std::string problem;

  const Json* find(const char* field) {
    const Json* value = row.find(field);
    if (value == nullptr && field != not_in_the_first_bundles) problem = fmt::format("no '{}'", field);
    return value;
  }
  void wrong(const char* field) { problem = fmt::format("'{}' of another type", field); }
  void operator()(const char* field, std::string& value) {
    const Json* found = find(field);
    if (found == nullptr) return;
    found->is(Json::Kind::string) ? void(value = found->string) : wrong(field);
  }
  void operator()(const char* field, int64_t& value) {
    const Json* found = find(field);
    if (found == nullptr) return;
    found->is(Json::Kind::integer) ? void(value = found->integer) : wrong(field);
  }
  void operator()(const char* field, double& value) {
    const Json* found = find(field);
    if (found == nullptr) return;
    const bool number = found->is(Json::Kind::number) || found->is(Json::Kind::integer);
    number ? void(value = found->number) : wrong(field);
  }
};

// Lines without their ends. A text that does not end with a line end has a cut last line, which `whole` says.
std::vector<std::string_view> lines_of(std::string_view text, bool* whole) {
  std::vector<std::string_view> lines;
  *whole = text.empty() || text.back() == '\n';
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

ErrorInfo file_error(const std::string& path, std::string_view wanted) {
  return bundle_error(printable(path), std::strerror(errno), std::string(wanted));
}

}  // namespace

std::string to_line(const StoreEntry& entry) {
  LineWriter writer;
  writer("kind", std::string(name(entry.kind)));
  visit_environment(entry.environment, writer);
  visit_key(entry, writer);
  visit_values(entry, writer);
  return writer.line + "}";
}

Result<StoreEntry> from_line(std::string_view line, const std::string& subject) {
  JsonLimits limits;
  limits.depth = 2;
  limits.values = 64;
  const auto parsed = parse_json(line, subject, limits);
  if (!parsed.ok()) return bundle_error(subject, parsed.error().found, "a row as JSON");
  if (!parsed->is(Json::Kind::object))
    return bundle_error(subject, std::string(name(parsed->kind)), "a row as a JSON object");
  StoreEntry entry;
  LineReader reader{*parsed, {}};
  std::string kind;
  reader("kind", kind);
  visit_environment(entry.environment, reader);
  visit_key(entry, reader);
  visit_values(entry, reader);
  if (const auto known = parse_entry_kind(kind); known) {
    entry.kind = *known;
  } else if (reader.problem.empty()) {
    reader.problem = fmt::format("kind '{}'", printable(kind));
  }
  if (reader.problem.empty()) reader.problem = why_bad(entry);
  if (!reader.problem.empty()) return bundle_error(subject, reader.problem, "a row of a store");
  return entry;
}

std::string bundle_of(const std::vector<StoreEntry>& rows) {
  std::string text = fmt::format("{{\"schema\":\"{}\",\"rows\":{}}}\n", bundle_schema, rows.size());
  for (const StoreEntry& row : rows) text += to_line(row) + "\n";
  Sha256 hash;
  hash.add(text);
  return text + fmt::format("{{\"sha256\":\"{}\"}}\n", hash.hex());
}

Result<std::vector<StoreEntry>> read_bundle(std::string_view text, const std::string& subject) {
  bool whole = false;
  const std::vector<std::string_view> lines = lines_of(text, &whole);
  const std::string wanted = fmt::format("a bundle of `gearshift store export` ({})", bundle_schema);
  if (lines.size() < 2 || !whole)
    return bundle_error(subject, text.empty() ? "an empty file" : "a file that was cut short", wanted);

  const auto head = parse_json(lines.front(), subject, {4, 16});
  if (!head.ok() || head->text_or("schema", "") != bundle_schema)
    return bundle_error(subject, "another first line", wanted);
  if (head->integer_or("rows", -1) != static_cast<int64_t>(lines.size()) - 2) {
    return bundle_error(subject, fmt::format("{} rows", lines.size() - 2),
                        fmt::format("{}, as its first line says", head->integer_or("rows", -1)));
  }
  const auto tail = parse_json(lines.back(), subject, {4, 16});
  Sha256 hash;
  hash.add(text.substr(0, static_cast<size_t>(lines.back().data() - text.data())));
  const std::string computed = hash.hex();
  if (!tail.ok() || tail->text_or("sha256", "") != computed) {
    return bundle_error(subject, "another SHA-256 than its last line says", computed);
  }
  std::vector<StoreEntry> rows;
  for (size_t i = 1; i + 1 < lines.size(); ++i) {
    GEARSHIFT_TRY(StoreEntry row, from_line(lines[i], fmt::format("{}, line {}", subject, i + 1)));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<StoreEntry> read_journal(std::string_view text, int64_t* bad) {
  bool whole = false;
  std::vector<std::string_view> lines = lines_of(text, &whole);
  if (!whole) {
    lines.pop_back();
    ++*bad;
  }
  std::vector<StoreEntry> rows;
  for (const std::string_view line : lines) {
    auto row = from_line(line, "journal");
    row.ok() ? rows.push_back(*std::move(row)) : void(++*bad);
  }
  return rows;
}

Result<std::string> read_text_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return file_error(path, "a file that can be read");
  struct stat info {};
  std::string text;
  Result<void> state;
  if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
    state = bundle_error(printable(path), "no regular file", "a file");
  } else if (info.st_size > largest_bundle) {
    state = bundle_error(printable(path), format_bytes(static_cast<uint64_t>(info.st_size)),
                         "at most " + format_bytes(largest_bundle));
  } else {
    text.resize(static_cast<size_t>(info.st_size));
    size_t done = 0;
    while (done < text.size()) {
      const ssize_t some = read(file, text.data() + done, text.size() - done);
      if (some < 0 && errno == EINTR) continue;
      if (some < 0) state = file_error(path, "a file that can be read");
      if (some <= 0) break;
      done += static_cast<size_t>(some);
    }
    text.resize(done);
  }
  close(file);
  if (!state.ok()) return state.error();
  return text;
}

Result<void> write_text_file(const std::string& path, std::string_view text) {
  const std::string written = fmt::format("{}.part{}", path, getpid());
  const int file = open(written.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return file_error(path, "a place that can be written");
  Result<void> state;
  while (!text.empty()) {
    const ssize_t some = write(file, text.data(), text.size());
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) {
      state = file_error(path, "a place that can be written");
      break;
    }
    text.remove_prefix(static_cast<size_t>(some));
  }
  if (close(file) != 0 && state.ok()) state = file_error(path, "a place that can be written");
  if (state.ok() && rename(written.c_str(), path.c_str()) != 0) state = file_error(path, "a place that can be written");
  if (!state.ok()) unlink(written.c_str());
  return state;
}

}  // namespace gearshift
