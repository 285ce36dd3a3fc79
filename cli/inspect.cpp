#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int inspect(const Call& call) {
  const Result<InspectReport> result = inspect_model(call.model);
  if (!result.ok()) return fail(result.error());
  return print_result(
      call, [&] { return inspect_json(*result); }, [&](size_t width) { return inspect_text(*result, width); });
}

}  // namespace gearshift::cli
