#include <cmath>
#include <random>

#include "moe/made_block.h"

namespace gearshift {
namespace {

using Kind = ExpertFunction::Kind;

double exact(const ExpertFunction& f, double gate, double up, bool gated) {
  if (f.limit > 0) gate = std::min<double>(gate, f.limit);
  double value = 0;
  if (f.kind == Kind::silu) value = gate / (1 + std::exp(-static_cast<double>(f.alpha) * gate));
  if (f.kind == Kind::gelu) value = gate * 0.5 * std::erfc(-gate / std::sqrt(2.0));
  if (f.kind == Kind::gelu_tanh)
    value = gate / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (gate + 0.044715 * gate * gate * gate)));
  if (f.kind == Kind::relu2) value = gate > 0 ? gate * gate : 0;
  if (!gated) return value;
  if (f.limit > 0) up = std::clamp<double>(up, -f.limit, f.limit);
  return value * (up + static_cast<double>(f.up_offset));
}

TEST(ApplyFunction, KnownAnswers) {
  // gpt-oss: gate 1, up 2: 1 * sigmoid(1.702) * 3; gate 9 is 7, up -8 is -7: 7 * sigmoid(11.914) * -6
  const ExpertFunction f{Kind::silu, 1.702f, 7, 1};
  const float rows[] = {1, 2, 9, -8};
  float out[2];
  apply_function(f, {true, true}, DType::f32, rows, 2, out);
  EXPECT_NEAR(out[0], 3 / (1 + std::exp(-1.702)), 1e-6);
  EXPECT_NEAR(out[1], -42 / (1 + std::exp(-11.914)), 1e-4);
  // The same numbers as halves: gates 1 and 2, ups 9 and -8.
  apply_function({Kind::silu, 1, 0, 0}, {true, false}, DType::f32, rows, 2, out);
  EXPECT_NEAR(out[0], 9 / (1 + std::exp(-1.0)), 1e-5);
  EXPECT_NEAR(out[1], -16 / (1 + std::exp(-2.0)), 1e-5);
  float ungated[4];
  apply_function({Kind::relu2, 1, 0, 0}, {false, false}, DType::f32, rows, 4, ungated);
  EXPECT_EQ(ungated[2], 81);
  EXPECT_EQ(ungated[3], 0);
}

TEST(ApplyFunction, OneRoundingInEveryType) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> draw(0, 3);
  const ExpertFunction functions[] = {{Kind::silu, 1, 0, 0}, {Kind::silu, 1.702f, 7, 1}, {Kind::silu, 1, 10, 0},
                                      {Kind::gelu, 1, 0, 0}, {Kind::gelu_tanh, 1, 0, 0}, {Kind::relu2, 1, 0, 0}};
  constexpr int64_t hidden = 37;
  for (const ExpertFunction& f : functions) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      for (const bool gated : {true, false}) {
        for (const bool interleaved : {true, false}) {
          testing::GuardedMatrix in(dtype, 1, gated ? 2 * hidden : hidden, 0), out(dtype, 1, hidden, 0);
          for (int64_t i = 0; i < (gated ? 2 * hidden : hidden); ++i) in.set(0, i, draw(random));
          apply_function(f, {gated, interleaved}, dtype, in.matrix().data, hidden, out.matrix().data);
          ASSERT_TRUE(out.intact());
          for (int64_t i = 0; i < hidden; ++i) {
            const double gate = in.at(0, gated && interleaved ? 2 * i : i);
            const double up = gated ? in.at(0, interleaved ? 2 * i + 1 : hidden + i) : 0;
            const double wanted = exact(f, gate, up, gated);
            // fp32 arithmetic, an exponent that is as exact as its argument, one rounding, subnormals of fp16
            const double allowed =
                std::abs(wanted) *
                    (0x1p-24 * (8 + 3 * std::abs(gate) + std::abs(gate * gate * gate)) + unit_roundoff(dtype)) +
                0x1p-25;
            ASSERT_NEAR(out.at(0, i), wanted, allowed)
                << name(f.kind) << ' ' << name(dtype) << " gated " << gated << " gate " << gate << " up " << up;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace gearshift
