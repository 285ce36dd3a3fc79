#include <gtest/gtest.h>

#include "base/try.h"
#include "gearshift/base.h"

namespace gearshift {
namespace {

TEST(Error, EveryCodeHasItsExitCodeAndName) {
  const std::vector<std::tuple<ErrorCode, int, std::string_view>> rows = {
      {ErrorCode::runtime, 1, "runtime"},
      {ErrorCode::usage, 2, "usage"},
      {ErrorCode::no_kernel, 3, "no_kernel"},
      {ErrorCode::fallback_refused, 3, "fallback_refused"},
      {ErrorCode::damaged_checkpoint, 4, "damaged_checkpoint"},
      {ErrorCode::unsupported_scheme, 4, "unsupported_scheme"},
      {ErrorCode::self_check, 5, "self_check"}};
  for (const auto& [code, exit, text] : rows) {
    EXPECT_EQ(exit_code(code), exit);
    EXPECT_EQ(name(code), text);
  }
}

TEST(Error, MessageLeavesOutEmptyFields) {
  EXPECT_EQ((ErrorInfo{ErrorCode::runtime, "a", "b", "c", "d", {}}).message(), "a: found b, wanted c (d)");
  EXPECT_EQ((ErrorInfo{ErrorCode::runtime, "a", "b", "", "", {}}).message(), "a: found b");
  EXPECT_EQ((ErrorInfo{ErrorCode::runtime, "a", "", "c", "", {}}).message(), "a: wanted c");
  EXPECT_EQ((ErrorInfo{ErrorCode::runtime, "", "b", "c", "", {}}).message(), "found b, wanted c");
  EXPECT_EQ((ErrorInfo{ErrorCode::runtime, "a", "", "", "d", {}}).message(), "a (d)");
  EXPECT_EQ((ErrorInfo{ErrorCode::runtime, "", "", "", "d", {}}).message(), "d");
}

TEST(Error, MessageIsOneLineWhateverTheFieldsHold) {
  const ErrorInfo error{ErrorCode::runtime, "a\nb", "\x1b[31m", std::string(1000, 'x'), "\xFF", {}};
  EXPECT_EQ(error.message(), "a\\nb: found \\x1b[31m, wanted " + std::string(1000, 'x') + " (\\xff)");
}

Result<int> half(int value) {
  if (value % 2 != 0) return ErrorInfo{ErrorCode::usage, "value", "odd", "even", "", {}};
  return value / 2;
}
Result<int> quarter(int value) {
  GEARSHIFT_TRY(const int once, half(value));
  GEARSHIFT_TRY(const int twice, half(once));
  return twice;
}

TEST(Result, TryPassesValuesAndErrorsOn) {
  EXPECT_EQ(*quarter(12), 3);
  EXPECT_FALSE(quarter(6).ok());
  EXPECT_EQ(quarter(6).error().found, "odd");
  EXPECT_EQ(half(4).value(), 2);
  try {
    half(3).value();
    FAIL() << "value() of an error must throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "value: found odd, wanted even");
    EXPECT_EQ(error.info().code, ErrorCode::usage);
  }
}

TEST(DType, NamesAndSizes) {
  for (int i = 0; i <= static_cast<int>(DType::boolean); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(parse_dtype(name(dtype)), dtype);
    EXPECT_TRUE(bits(dtype) > 0 && bits(dtype) <= 64);
  }
  EXPECT_EQ(bits(DType::f4), 4);
  EXPECT_EQ(bits(DType::f6_e2m3), 6);
  EXPECT_EQ(bits(DType::f6_e3m2), 6);
  EXPECT_EQ(bits(DType::f8_e8m0), 8);
  EXPECT_EQ(bits(DType::bf16), 16);
  EXPECT_EQ(bits(DType::u32), 32);
  EXPECT_EQ(bits(DType::i64), 64);
  EXPECT_EQ(name(DType::f8_e4m3), "F8_E4M3");
  EXPECT_EQ(name(DType::boolean), "BOOL");
  EXPECT_EQ(parse_dtype("f32"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, ShapesAsText) {
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{7}), "[7]");
  EXPECT_EQ(to_string(Shape{64, -1}), "[64, -1]");
}

}  // namespace
}  // namespace gearshift
