#include <algorithm>

#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int bench(const Call& call) {
  ProgressBar bar(stderr, !call.quiet);
  const Result<BenchReport> result = gearshift::bench(call.options, progress_on(bar));
  bar.clear();
  if (!result.ok()) return fail(result.error());
  note_policy(call, result->plan);
  const auto right = [](const BenchRow& row) { return !row.refused.empty() || row.measurement.comparison.ok; };
  return print_result(
      call, [&] { return bench_json(*result); }, [&](size_t width) { return bench_text(*result, width); },
      std::all_of(result->rows.begin(), result->rows.end(), right) ? 0 : exit_code(ErrorCode::self_check));
}

}  // namespace gearshift::cli
