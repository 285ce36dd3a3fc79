#include "base/build_identity.h"

namespace gearshift {

std::vector<std::pair<std::string, std::string>> build_identity() {
#if defined(__clang__)
  const char* compiler = "clang " __clang_version__;
#else
  const char* compiler = "gcc " __VERSION__;
#endif
#if defined(__OPTIMIZE__)
  const char* optimized = "yes";
#else
  const char* optimized = "no";
#endif
  return {{"version", GEARSHIFT_VERSION}, {"compiler", compiler}, {"optimized", optimized}};
}

}  // namespace gearshift
