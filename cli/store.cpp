#include "output.h"
#include "report/documents.h"
#include "report/texts.h"
#include "report/usage.h"

namespace gearshift::cli {

int store(const Call& call) {
  const Result<StoreReport> result = use_store(call.words, call.options);
  if (!result.ok()) return fail(result.error());
  for (const std::string& line : result->notes) note(call, "warning: " + shown(line));
  // A store with something wrong is an answer to `verify`, and no reason for the other actions to fail.
  const bool wrong = result->action == "verify" && (!result->check.problems.empty() || result->check.bad_rows > 0);
  return print_result(
      call, [&] { return store_json(*result); }, [&](size_t width) { return store_text(*result, width); },
      wrong ? 1 : 0);
}

}  // namespace gearshift::cli
