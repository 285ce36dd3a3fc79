// The display width of the widest line of a text.
#pragma once

#include <algorithm>

#include "base/text.h"
#include "report/table.h"

namespace gearshift {

inline size_t widest(const std::string& text) {
  size_t width = 0;
  for (const std::string& line : split(text, '\n')) width = std::max(width, display_width(line));
  return width;
}

}  // namespace gearshift
