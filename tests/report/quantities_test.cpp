#include "report/quantities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gearshift {
namespace {

TEST(QuantitiesTest, Times) {
  EXPECT_EQ(time_text(0.5), "0.50 us");
  EXPECT_EQ(time_text(12.34), "12.3 us");
  EXPECT_EQ(time_text(999.4), "999 us");
  EXPECT_EQ(time_text(999.6), "1.00 ms");
  EXPECT_EQ(time_text(123456), "123 ms");
  EXPECT_EQ(time_text(4.56e6), "4.56 s");
  EXPECT_EQ(time_text(std::nan("")), "-");
}

TEST(QuantitiesTest, Errors) {
  EXPECT_EQ(error_text(0), "0");
  EXPECT_EQ(error_text(3.14e-4), "3.1e-04");
  EXPECT_EQ(error_text(std::numeric_limits<double>::infinity()), "not finite");
}

TEST(QuantitiesTest, Ranges) {
  EXPECT_EQ(range_text(1, 16), "1-16");
  EXPECT_EQ(range_text(17, 0), "17-");
  EXPECT_EQ(range_text(1, 0), "all");
  EXPECT_EQ(range_text(5, 5), "5");
  EXPECT_EQ(batch_text(1, 0), "any batch");
  EXPECT_EQ(batch_text(17, 0), "batch 17-");
}

TEST(QuantitiesTest, RatesAndShares) {
  EXPECT_EQ(rate_text(0), "-");
  EXPECT_EQ(rate_text(0.0314), "0.031");
  EXPECT_EQ(rate_text(24.06), "24.1");
  EXPECT_EQ(rate_text(1830.4), "1830");
  EXPECT_EQ(percent_text(0.372), "37 %");
  EXPECT_EQ(percent_text(0.0312), "3.1 %");
  EXPECT_EQ(count_text(1, "layer", "layers"), "1 layer");
  EXPECT_EQ(count_text(0, "layer", "layers"), "0 layers");
}

}  // namespace
}  // namespace gearshift
