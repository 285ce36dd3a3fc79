#include <algorithm>

#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int run(const Call& call) {
  ProgressBar bar(stderr, !call.quiet);
  const Result<RunReport> result = run_model(call.model, call.options, progress_on(bar));
  bar.clear();
  if (!result.ok()) return fail(result.error());
  note_policy(call, result->plan);
  const bool right =
      std::all_of(result->rows.begin(), result->rows.end(), [](const Measurement& row) { return row.comparison.ok; });
  return print_result(
      call, [&] { return run_json(*result); }, [&](size_t width) { return run_text(*result, width); },
      right ? 0 : exit_code(ErrorCode::self_check));
}

}  // namespace gearshift::cli
