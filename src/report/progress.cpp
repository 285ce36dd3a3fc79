#include "report/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

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
  if (!started_) first_ = now;
  started_ = drawn_ = true;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - first_).count();
  // One column stays free: some terminals wrap when the last one is written.
  std::fprintf(stream_, "\r\x1b[K%s", progress_line(done, total, what, terminal_width(stream_) - 1, seconds).c_str());
  std::fflush(stream_);
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  drawn_ = false;
}

namespace {

// "" where there is nothing to go by.
std::string time_left(size_t done, size_t total, double seconds) {
  constexpr double kSooner = 2;  // seconds: a shorter history says little
  if (done == 0 || done >= total || seconds < kSooner) return "";
  const double left = seconds / static_cast<double>(done) * static_cast<double>(total - done);
  if (left < 90) return fmt::format(", {:.0f} s left", std::ceil(left));
  return left < 5400 ? fmt::format(", {:.0f} min left", std::ceil(left / 60))
                     : fmt::format(", {:.0f} h left", std::ceil(left / 3600));
}

}  // namespace

std::string progress_line(size_t done, size_t total, std::string_view what, size_t width, double seconds) {
  constexpr size_t kBar = 20;
  const size_t filled = total == 0 ? kBar : kBar * std::min(done, total) / total;
  const std::string left = time_left(done, total, seconds);
  const std::string line = fmt::format("[{}{}] {}/{}{} {}", std::string(filled, '#'), std::string(kBar - filled, '.'),
                                       done, total, left.empty() ? "" : left + ",", printable(what));
  return cut_middle(line, width);
}

}  // namespace gearshift
