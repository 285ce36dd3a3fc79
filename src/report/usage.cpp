#include "report/usage.h"

#include "base/text.h"
#include "report/table.h"

namespace gearshift {

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
  const std::vector<std::string> near = near_names(word, names);
  return near.empty() ? "" : "did you mean " + join(near, " or ") + "?";
}

std::string error_lines(const ErrorInfo& error) {
  constexpr size_t kLongest = 4000;
  std::string out = "gearshift: error: " + error.message() + "\n";
  for (const std::string& detail : error.details) out += "  " + printable(detail, kLongest) + "\n";
  return out;
}

std::string shown(std::string_view text) { return printable(text); }

std::string help_entry(std::string_view name, std::string_view help, size_t width) {
  constexpr size_t kIndent = 30;
  std::string first = "  " + std::string(name);
  if (display_width(first) + 2 > kIndent) {
    return first + "\n" + wrapped_paragraph(std::string(kIndent, ' '), help, width);
  }
  first.append(kIndent - display_width(first), ' ');
  return wrapped_paragraph(first, help, width);
}

}  // namespace gearshift
