#include "report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "report/table.h"
#include "report/terminal.h"

namespace gearshift {

ProgressBar::ProgressBar(std::FILE* stream, bool wanted)
    : stream_(stream), active_(wanted && isatty(fileno(stream)) == 1) {}

void ProgressBar::update(size_t done, size_t total, std::string_view what) {
  if (!active_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && done < total && now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  // One column stays free: some terminals wrap when the last one is written.
  std::fprintf(stream_, "\r\x1b[K%s", progress_line(done, total, what, terminal_width(stream_) - 1).c_str());
  std::fflush(stream_);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  drawn_ = false;
}

std::string progress_line(size_t done, size_t total, std::string_view what, size_t width) {
  constexpr size_t kBar = 20;
  const size_t filled = total == 0 ? kBar : kBar * std::min(done, total) / total;
  const std::string line = fmt::format("[{}{}] {}/{} {}", std::string(filled, '#'), std::string(kBar - filled, '.'),
                                       done, total, printable(what));
  return cut_middle(line, width);
}

}  // namespace gearshift
