#include "output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/whole_file.h"
#include "report/terminal.h"
#include "report/usage.h"

namespace gearshift::cli {

namespace {

ErrorInfo cannot_write(const std::string& where, int error) {
  return {ErrorCode::runtime, shown(where), std::strerror(error), "a place that can be written", "", {}};
}

Result<void> write_all(std::FILE* file, const std::string& text, const std::string& where) {
  errno = 0;
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  if (!whole) return cannot_write(where, errno != 0 ? errno : EIO);
  return {};
}

// The file of --json; "-" for standard output, "" for no document.
std::string json_target(const Call& call) {
  const auto found = call.options.find("json");
  if (found == call.options.end() || found->second.values.empty()) return "";
  const std::string& target = found->second.values.back();
  if (found->second.source == "command line") return target;
  // GEARSHIFT_JSON=1 is a switch; anything else names a file.
  if (target == "1" || target == "true" || target == "yes") return "-";
  return target == "0" || target == "false" || target == "no" ? "" : target;
}

}  // namespace

bool is_set(const Call& call, const char* flag) {
  const auto found = call.options.find(flag);
  if (found == call.options.end()) return false;
  const std::string& value = found->second.values.back();
  return value != "0" && value != "false" && value != "no";
}

int fail(const ErrorInfo& error) {
  std::fputs(error_lines(error).c_str(), stderr);
  return exit_code(error.code);
}

void note(const Call& call, const std::string& text) {
  if (!call.quiet) std::fputs(("gearshift: " + text + "\n").c_str(), stderr);
}

void log_options(const Call& call) {
  if (!call.verbose) return;
  for (const auto& [name, value] : call.options) {
    std::string text;
    for (const std::string& one : value.values) text += (text.empty() ? "" : " ") + shown(one);
    const std::string where = value.source == "file" ? ", " + shown(value.written) : "";
    note(call, "option " + name + " = " + text + " (" + value.source + where + ")");
  }
}

bool json_to_stdout(const Call& call) { return json_target(call) == "-"; }

int print_result(const Call& call, const std::function<std::string()>& json,
                 const std::function<std::string(size_t width)>& text, int code,
                 const std::function<std::string()>& html) {
  const std::string target = json_target(call);
  if (!target.empty() && target != "-") {
    if (const auto written = write_whole_file(target, json()); !written.ok()) return fail(written.error());
  }
  if (const auto page = call.options.find("html"); html != nullptr && page != call.options.end()) {
    const auto written = write_whole_file(page->second.values.back(), html());
    if (!written.ok()) return fail(written.error());
  }
  const std::string shown_text = target == "-" ? json() : text(terminal_width(stdout));
  if (const auto written = write_all(stdout, shown_text, "standard output"); !written.ok())
    return fail(written.error());
  return code;
}

void note_policy(const Call& call, const Plan& plan) {
  for (const std::string& unused : plan.unused)
    note(call, "note: '" + shown(unused) + "' of the policy touched nothing in this plan");
  for (const std::string& line : plan.notes) note(call, "warning: " + shown(line));
  if (!json_to_stdout(call)) return;
  for (const Warning& warning : plan.warnings) note(call, "warning: " + warning.code + ": " + shown(warning.message));
}

Progress progress_on(ProgressBar& bar) {
  if (!bar.active()) return nullptr;
  return [&bar](size_t done, size_t total, std::string_view what) { bar.update(done, total, what); };
}

}  // namespace gearshift::cli
