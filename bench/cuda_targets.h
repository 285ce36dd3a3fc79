// What bench_cuda_kernels holds its times against: limits in units of what was measured in the same run.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace gearshift {

enum class Target {
  none,
  four_bits,   // weight-only, by the time of reading: floors of one run
  eight_bits,  // likewise
  library,     // with the quantizer, by the library's product alone
  baseline     // by cuBLASLt's product of bf16 weights
};

// Layers of 64 Mi weights and more.
inline bool is_large(int64_t n, int64_t k) { return n * k >= int64_t{64} << 20; }

struct Measured {
  int64_t n = 0, k = 0, m = 0;
  double us = 0, floor_us = 0;
  double alone_us = 0;  // 0: the library has no such product
  double bf16_us = 0;
};
struct Limit {
  std::string name;  // "": nothing is asked of it
  double us = 0;
};

inline Limit limit_of(Target target, const Measured& at) {
  const bool large = is_large(at.n, at.k);
  const auto of_floor = [&](const char* what, double factor) {
    return Limit{fmt::format("{}, {} layers: {:.2f} x floor", what, large ? "large" : "small", factor),
                 factor * at.floor_us};
  };
  if (target == Target::four_bits && at.m <= 8) return of_floor("4 bits, M 1 to 8", 1.40);
  if (target == Target::four_bits && at.m <= 16) return of_floor("4 bits, M 9 to 16", large ? 1.60 : 1.75);
  if (target == Target::eight_bits && at.m <= 16) return of_floor("8 bits, M 1 to 16", large ? 1.25 : 1.45);
  if (target == Target::library && at.m <= 16 && at.alone_us > 0)
    return {"8 bits by 8 bits, M 1 to 16: cuBLASLt alone + 2 us", at.alone_us + 2};
  if (target == Target::baseline && at.bf16_us > 0)
    return {fmt::format("baseline, M {}: 1.12 x cuBLASLt bf16", at.m), 1.12 * at.bf16_us};
  return {};
}

// How many rows met each limit, and the one that came nearest to it or missed it most.
class Verdicts {
 public:
  void add(const Limit& limit, const std::string& row, double us) {
    Verdict& verdict = by_limit_[limit.name];
    const double share = us / limit.us;
    ++verdict.rows;
    verdict.met += share <= 1 ? 1 : 0;
    if (share <= verdict.worst) return;
    verdict.worst = share;
    verdict.worst_row = row;
  }
  std::string text() const {
    std::string out;
    for (const auto& [name, v] : by_limit_)
      out +=
          fmt::format("{:48} {:3} of {:3} met; {:5.3f} of the limit: {}\n", name, v.met, v.rows, v.worst, v.worst_row);
    return out;
  }

 private:
  struct Verdict {
    int rows = 0, met = 0;
    double worst = 0;
    std::string worst_row;
  };
  std::map<std::string, Verdict> by_limit_;
};

}  // namespace gearshift
