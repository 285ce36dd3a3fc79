#include <gtest/gtest.h>

#include "device/host_cpu.h"

namespace gearshift {
namespace {

constexpr Isa kAll[] = {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_vnni, Isa::avx512_bf16, Isa::amx, Isa::neon};

TEST(IsaTest, NamesRoundTripInAnyCase) {
  for (Isa isa : kAll) {
    std::string text(name(isa));
    EXPECT_EQ(parse_isa(text), isa);
    for (char& c : text) c = c == '_' ? '-' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_EQ(parse_isa(text), isa) << text;
  }
  EXPECT_FALSE(parse_isa(""));
  EXPECT_FALSE(parse_isa("avx"));
  EXPECT_FALSE(parse_isa("avx2 "));
}

TEST(IsaTest, EachX86LevelIncludesThoseBeforeIt) {
  for (Isa have : kAll) {
    for (Isa need : kAll) {
      const bool both_x86 = have != Isa::neon && need != Isa::neon;
      const bool wanted = need == Isa::portable || have == need || (both_x86 && have > need);
      EXPECT_EQ(isa_covers(have, need), wanted) << name(have) << " for " << name(need);
    }
  }
  EXPECT_FALSE(isa_covers(Isa::neon, Isa::avx2));
  EXPECT_FALSE(isa_covers(Isa::amx, Isa::neon));
}

TEST(IsaTest, TheLimitOnlyStepsDown) {
  EXPECT_EQ(*limit_isa(Isa::avx512_bf16, ""), Isa::avx512_bf16);
  EXPECT_EQ(*limit_isa(Isa::avx512_bf16, "avx2"), Isa::avx2);
  EXPECT_EQ(*limit_isa(Isa::avx512_bf16, "AVX512-VNNI"), Isa::avx512_vnni);
  EXPECT_EQ(*limit_isa(Isa::avx2, "amx"), Isa::avx2);
  EXPECT_EQ(*limit_isa(Isa::amx, "portable"), Isa::portable);
  EXPECT_EQ(*limit_isa(Isa::neon, "portable"), Isa::portable);
  EXPECT_EQ(*limit_isa(Isa::neon, "neon"), Isa::neon);
}

TEST(IsaTest, AnUnknownLimitNamesWhatWasFoundAndWhatIsValid) {
  for (const char* wrong : {"avx1024", "neon", "0", "\x1b[31m"}) {
    const auto result = limit_isa(Isa::avx2, wrong);
    ASSERT_FALSE(result.ok()) << wrong;
    EXPECT_EQ(result.error().code, ErrorCode::usage);
    EXPECT_EQ(result.error().subject, "GEARSHIFT_MAX_ISA");
    EXPECT_NE(result.error().wanted.find("avx512_vnni"), std::string::npos);
    EXPECT_EQ(result.error().message().find('\x1b'), std::string::npos);
  }
  EXPECT_FALSE(limit_isa(Isa::neon, "avx2").ok());
}

TEST(PlatformTest, Names) {
  EXPECT_EQ(name(Platform::cpu), "cpu");
  EXPECT_EQ(name(Platform::cuda), "cuda");
  EXPECT_EQ(name(Platform::rocm), "rocm");
  EXPECT_EQ(name(Platform::xpu), "xpu");
}

}  // namespace
}  // namespace gearshift
