#include "store/quarantine.h"

#include <gtest/gtest.h>

namespace gearshift {
namespace {

TEST(Quarantines, RowsAreFoundByTheirWholeKey) {
  Store store;
  const Quarantine row{"kernel", 2, "class", "BF16", 1, 16, "off"};
  for (int i = 0; i < 6; ++i) store.quarantines.push_back(row);
  store.quarantines[1].kernel = "kernel2";
  store.quarantines[2].kernel_version = 1;
  store.quarantines[3].layer_class = "other";
  store.quarantines[4].dtype = "F16";
  store.quarantines[5].m_min = 64;
  store.quarantines[5].m_max = 0;
  const auto found = quarantines_of(store, "kernel", 2, "class", "BF16");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], &store.quarantines[0]);
  EXPECT_EQ(found[1], &store.quarantines[5]);
  EXPECT_TRUE(quarantines_of({}, "kernel", 2, "class", "BF16").empty());
}

TEST(Quarantines, ARowWithoutABatchSizeConcernsNothing) {
  Store store;
  store.quarantines = {
      {"k", 1, "c", "BF16", 9, 8, ""}, {"k", 1, "c", "BF16", 1, -4, ""}, {"k", 1, "c", "BF16", -4, -2, ""}};
  EXPECT_TRUE(quarantines_of(store, "k", 1, "c", "BF16").empty());
  store.quarantines = {{"k", 1, "c", "BF16", -4, 1, ""}};
  EXPECT_EQ(quarantines_of(store, "k", 1, "c", "BF16").size(), 1u);
}

}  // namespace
}  // namespace gearshift
