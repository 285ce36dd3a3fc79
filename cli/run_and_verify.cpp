// Verbs that execute kernels: a progress bar while they work, then the result and an exit code that says whether all
// checks passed.
#include <algorithm>

#include "output.h"
#include "report/documents.h"
#include "report/pages.h"
#include "report/texts.h"

namespace gearshift::cli {

namespace {

template <class Report>
struct Work {
  Result<Report> (*work)(const std::string& model, const Options& options, const Progress& progress);
  std::string (*json)(const Report& report);
  std::string (*text)(const Report& report, size_t width);
  std::string (*html)(const Report& report);
  bool quarantine_fails;  // else the next kernel ran, and only its rows count
};

template <class Report>
int do_work(const Call& call, const Work<Report>& verb) {
  ProgressBar bar(stderr, !call.quiet);
  const Result<Report> result = verb.work(call.model, call.options, progress_on(bar));
  bar.clear();
  if (!result.ok()) return fail(result.error());
  note_policy(call, result->plan);
  const bool right =
      std::all_of(result->rows.begin(), result->rows.end(), [](const Measurement& row) { return row.comparison.ok; }) &&
      (!verb.quarantine_fails || result->quarantined.empty());
  return print_result(
      call, [&] { return verb.json(*result); }, [&](size_t width) { return verb.text(*result, width); },
      right ? 0 : exit_code(ErrorCode::self_check), [&] { return verb.html(*result); });
}

}  // namespace

int run(const Call& call) { return do_work<RunReport>(call, {run_model, run_json, run_text, run_html, false}); }

int verify(const Call& call) {
  return do_work<VerifyReport>(call, {verify_model, verify_json, verify_text, verify_html, true});
}

}  // namespace gearshift::cli
