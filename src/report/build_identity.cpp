#include "report/build_identity.h"

#include <fmt/format.h>

namespace gearshift {

std::vector<std::pair<std::string, std::string>> build_identity() {
#if defined(__clang__)
  const std::string compiler = fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  const std::string compiler = fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
#if defined(__OPTIMIZE__)
  const char* optimized = "yes";
#else
  const char* optimized = "no";
#endif
  return {{"version", GEARSHIFT_VERSION}, {"compiler", compiler}, {"optimized", optimized}};
}

}  // namespace gearshift
