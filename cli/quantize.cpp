#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int quantize(const Call& call) {
  ProgressBar bar(stderr, !call.quiet);
  const Result<QuantizeReport> result = quantize_model(call.model, call.options, progress_on(bar));
  bar.clear();
  if (!result.ok()) return fail(result.error());
  return print_result(
      call, [&] { return quantize_json(*result); }, [&](size_t width) { return quantize_text(*result, width); });
}

}  // namespace gearshift::cli
