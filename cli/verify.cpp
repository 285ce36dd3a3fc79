#include <algorithm>

#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int verify(const Call& call) {
  ProgressBar bar(stderr, !call.quiet);
  const Result<VerifyReport> result = verify_model(call.model, call.options, progress_on(bar));
  bar.clear();
  if (!result.ok()) return fail(result.error());
  note_policy(call, result->plan);
  const bool right =
      std::all_of(result->rows.begin(), result->rows.end(), [](const Measurement& row) { return row.comparison.ok; });
  return print_result(
      call, [&] { return verify_json(*result); }, [&](size_t width) { return verify_text(*result, width); },
      right && result->quarantined.empty() ? 0 : exit_code(ErrorCode::self_check));
}

}  // namespace gearshift::cli
