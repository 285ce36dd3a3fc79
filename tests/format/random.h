// A random source whose seed is printed, and can be given back through GEARSHIFT_TEST_SEED to repeat a failure.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace gearshift::format {

class Random {
 public:
  Random() {
    const char* given = std::getenv("GEARSHIFT_TEST_SEED");
    seed_ = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
    std::printf("GEARSHIFT_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed_));
    engine_.seed(seed_);
  }

  // Any float but infinity and NaN: all exponents, subnormals and both zeros.
  float any_finite() {
    for (;;) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(engine_()));
      if (std::isfinite(x)) return x;
    }
  }
  float normal(float deviation) { return std::normal_distribution<float>(0, deviation)(engine_); }
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }

  // `count` normal values of one random magnitude, one of them sometimes an outlier.
  std::vector<float> block(int count) {
    const float deviation = std::ldexp(1.0f, between(-30, 30));
    std::vector<float> x(static_cast<size_t>(count));
    for (float& value : x) value = normal(deviation);
    if (between(0, 1) != 0) x[static_cast<size_t>(between(0, count - 1))] *= 100;
    return x;
  }

 private:
  uint64_t seed_ = 0;
  std::mt19937_64 engine_;
};

}  // namespace gearshift::format
