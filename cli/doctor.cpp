#include <algorithm>

#include "output.h"
#include "report/documents.h"
#include "report/texts.h"

namespace gearshift::cli {

int doctor(const Call& call) {
  const Result<DoctorReport> result = gearshift::doctor(call.options);
  if (!result.ok()) return fail(result.error());
  const auto& tests = result->launch_tests;
  const bool right = std::all_of(tests.begin(), tests.end(), [](const LaunchTest& test) { return test.ok; });
  return print_result(
      call, [&] { return doctor_json(*result); }, [&](size_t width) { return doctor_text(*result, width); },
      right ? 0 : exit_code(ErrorCode::self_check));
}

}  // namespace gearshift::cli
