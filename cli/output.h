// Where results, log lines and errors go, and what exit code follows.
#pragma once

#include <functional>

#include "report/progress.h"
#include "verbs.h"

namespace gearshift::cli {

// A flag that concerns output; GEARSHIFT_QUIET=0 is a way to say no.
bool is_set(const Call& call, const char* flag);
// One line on standard error, its list indented below; returns the exit code.
int fail(const ErrorInfo& error);
// One log line on standard error, unless -q.
void note(const Call& call, const std::string& text);
// With -v: each option and where it came from.
void log_options(const Call& call);

// Writes the document to the file of --json, or to standard output instead of the text, and the page to the file of
// --html. Returns `code`, or 1 where the result could not be written. A file is seen complete or not at all.
int print_result(const Call& call, const std::function<std::string()>& json,
                 const std::function<std::string(size_t width)>& text, int code = 0,
                 const std::function<std::string()>& html = nullptr);
// Names of the policy that touched nothing; with --json to standard output also the warnings, which no table shows
// then.
void note_policy(const Call& call, const Plan& plan);

bool json_to_stdout(const Call& call);
// A bar on standard error while long work goes on; draws nothing with -q or where that is no terminal.
Progress progress_on(ProgressBar& bar);

}  // namespace gearshift::cli
