#include "plan/groups.h"

#include <gtest/gtest.h>

namespace gearshift {
namespace {

TEST(Groups, RolesLeaveOutNumbers) {
  EXPECT_EQ(role_of("model.layers.12.mlp.experts.3.w1"), "model.layers.*.mlp.experts.*.w1");
  EXPECT_EQ(role_of("lm_head"), "lm_head");
  EXPECT_EQ(role_of("a.1b.w13..2"), "a.1b.w13..*");
  EXPECT_EQ(role_of(""), "");
}

TEST(Groups, CountInOrderOfFirstAppearance) {
  Groups groups;
  groups.add("x", "a");
  groups.add("y", "b");
  groups.add("x", "c");
  ASSERT_EQ(groups.groups().size(), 2u);
  EXPECT_EQ(counted(groups.groups()[0]), "2 layers, such as a");
  EXPECT_EQ(counted(groups.groups()[1]), "b");
  EXPECT_EQ(groups.rows(), 3);
}

}  // namespace
}  // namespace gearshift
