// A progress bar on standard error where that is a terminal; nothing otherwise.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace gearshift {

class ProgressBar {
 public:
  // Draws only when `stream` is a terminal and `wanted`.
  ProgressBar(std::FILE* stream, bool wanted);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() { clear(); }

  bool active() const { return active_; }
  // At most ten times a second, and at the end.
  void update(size_t done, size_t total, std::string_view what);
  // Wipes the bar, so that other lines can be printed.
  void clear();

 private:
  std::FILE* stream_;
  bool active_;
  bool started_ = false, drawn_ = false;
  std::chrono::steady_clock::time_point first_, last_;
};

// "[#####.....] 12/24, 9 s left, model.layers.3.mlp" in at most `width` columns. What is left is estimated from the
// seconds that the steps done took, once there have been enough of them to say so.
std::string progress_line(size_t done, size_t total, std::string_view what, size_t width, double seconds = 0);

}  // namespace gearshift
