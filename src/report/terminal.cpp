#include "report/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace gearshift {

size_t terminal_width(std::FILE* stream) {
  int64_t width = 0;
  if (const char* columns = std::getenv("COLUMNS")) width = parse_integer(columns).value_or(0);
  winsize window{};
  if (width <= 0 && ioctl(fileno(stream), TIOCGWINSZ, &window) == 0) width = window.ws_col;
  if (width <= 0) width = 100;
  return static_cast<size_t>(std::clamp<int64_t>(width, 40, 400));
}

}  // namespace gearshift
