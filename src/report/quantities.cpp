#include "report/quantities.h"

#include <fmt/format.h>

#include <cmath>

namespace gearshift {

namespace {

std::string three_digits(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

}  // namespace

std::string time_text(double microseconds) {
  if (!std::isfinite(microseconds)) return "-";
  if (microseconds < 999.5) return three_digits(microseconds) + " us";
  if (microseconds < 999.5e3) return three_digits(microseconds / 1e3) + " ms";
  return three_digits(microseconds / 1e6) + " s";
}

std::string error_text(double relative) {
  if (relative == 0) return "0";
  return std::isfinite(relative) ? fmt::format("{:.1e}", relative) : "not finite";
}

std::string rate_text(double per_second) {
  if (!std::isfinite(per_second) || per_second <= 0) return "-";
  return per_second < 0.1 ? fmt::format("{:.2g}", per_second) : three_digits(per_second);
}

std::string percent_text(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:.{}f} %", 100 * fraction, fraction < 0.0995 ? 1 : 0) : "-";
}

std::string range_text(int64_t m_min, int64_t m_max) {
  if (m_min == m_max) return fmt::format("{}", m_min);
  if (m_max != 0) return fmt::format("{}-{}", m_min, m_max);
  return m_min <= 1 ? "all" : fmt::format("{}-", m_min);
}

std::string batch_text(int64_t m_min, int64_t m_max) {
  return m_min <= 1 && m_max == 0 ? "any batch" : "batch " + range_text(m_min, m_max);
}

std::string shape_text(int64_t n, int64_t k) { return fmt::format("{} x {}", n, k); }

std::string count_text(int64_t count, const char* singular, const char* plural) {
  return fmt::format("{} {}", count, count == 1 ? singular : plural);
}

}  // namespace gearshift
