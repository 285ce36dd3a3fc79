// Quantities as short text for tables.
#pragma once

#include <cstdint>
#include <string>

namespace gearshift {

std::string time_text(double microseconds);            // "12.3 us", "1.23 ms", "4.56 s"
std::string error_text(double relative);               // "3.1e-04", "0"
std::string rate_text(double per_second);              // "24.1", "0.031", "1830"
std::string percent_text(double fraction);             // "37 %"
std::string range_text(int64_t m_min, int64_t m_max);  // "1-16", "17-", "5", "all" for 1 to infinity (m_max 0)
std::string batch_text(int64_t m_min, int64_t m_max);  // "batch 1-16", "any batch"
std::string shape_text(int64_t n, int64_t k);          // "1536 x 384"
std::string count_text(int64_t count, const char* singular, const char* plural);  // "1 layer", "12 layers"

}  // namespace gearshift
