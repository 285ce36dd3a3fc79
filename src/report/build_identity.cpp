#include "report/build_identity.h"

namespace gearshift {

std::vector<std::pair<std::string, std::string>> build_identity() {
#if defined(__OPTIMIZE__)
  const char* optimized = "yes";
#else
  const char* optimized = "no";
#endif
  return {{"version", GEARSHIFT_VERSION}, {"compiler", __VERSION__}, {"optimized", optimized}};
}

}  // namespace gearshift
