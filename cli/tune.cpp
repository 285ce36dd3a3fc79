#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int tune(const Call& call) {
  ProgressBar bar(stderr, !call.quiet);
  const Result<TuneReport> result = tune_model(call.model, call.options, progress_on(bar));
  bar.clear();
  if (!result.ok()) return fail(result.error());
  note_policy(call, result->plan);
  return print_result(
      call, [&] { return tune_json(*result); }, [&](size_t width) { return tune_text(*result, width); });
}

}  // namespace gearshift::cli
