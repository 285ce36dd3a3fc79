#include "kernel/plugin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "gearshift/gearshift_plugin.h"

namespace gearshift {
namespace {

const std::string plugins = GEARSHIFT_TEST_PLUGINS "/";

TEST(Plugins, TheExampleStandsBehindOurs) {
  const auto registry = with_plugins(builtin_registry(), {plugins + "example_plugin.so"});
  ASSERT_TRUE(registry.ok()) << registry.error().message();
  const KernelList* list = registry->find(Platform::cpu, Family::bf16);
  const size_t before = builtin_registry().find(Platform::cpu, Family::bf16)->entries.size();
  ASSERT_EQ(list->entries.size(), before + 1);
  const Kernel& kernel = *list->entries.back().kernel;
  EXPECT_EQ(kernel.name, "example_bf16");
  EXPECT_EQ(kernel.backend, "example");
  EXPECT_EQ(kernel.layout->name, "example.example_fp32_rows");
  EXPECT_EQ(kernel.contract.weight_dtypes, std::vector<DType>{DType::bf16});
  EXPECT_FALSE(kernel.contract.bias);
  EXPECT_NE(list->entries.back().why.find("plugin example"), std::string_view::npos);
  EXPECT_EQ(registry->find(Platform::cpu, Family::mxfp4)->entries.size(),
            builtin_registry().find(Platform::cpu, Family::mxfp4)->entries.size());
}

TEST(Plugins, LoadedOnceHoweverOftenItIsNamed) {
  const auto first =
      with_plugins(builtin_registry(), {plugins + "stub_plugin.so", plugins + "../plugins/stub_plugin.so"});
  const auto second = with_plugins(builtin_registry(), {plugins + "stub_plugin.so"});
  ASSERT_TRUE(first.ok() && second.ok());
  const auto& a = first->find(Platform::cpu, Family::bf16)->entries;
  const auto& b = second->find(Platform::cpu, Family::bf16)->entries;
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(a.back().kernel, b.back().kernel);
}

TEST(Plugins, KernelsOfOneLayoutShareIt) {
  const auto registry = with_plugins(builtin_registry(), {plugins + "stub_plugin.so"});
  ASSERT_TRUE(registry.ok());
  std::map<std::string_view, std::set<const Layout*>> layouts;
  size_t kernels = 0;
  for (const ListEntry& entry : registry->find(Platform::cpu, Family::bf16)->entries) {
    if (!entry.kernel->name.starts_with("stub_")) continue;
    layouts[entry.kernel->layout->name].insert(entry.kernel->layout);
    ++kernels;
  }
  ASSERT_GT(kernels, layouts.size() + 4);
  for (const auto& [name, same] : layouts) EXPECT_EQ(same.size(), 1u) << name;
}

TEST(Plugins, WhatIsNoneIsRefusedInOneLine) {
  const auto message = [](const std::string& file) {
    const auto registry = with_plugins(builtin_registry(), {file});
    if (registry.ok()) return std::string();
    EXPECT_EQ(registry.error().code, ErrorCode::usage);
    EXPECT_EQ(registry.error().message().find('\n'), std::string::npos);
    return registry.error().message();
  };
  EXPECT_NE(message(plugins + "old_plugin.so").find("another version of the plugin interface, wanted version 1"),
            std::string::npos)
      << message(plugins + "old_plugin.so");
  EXPECT_NE(message(plugins + "none.so").find("no such file"), std::string::npos);
  const std::string text = ::testing::TempDir() + "/no_library.so";
  std::ofstream(text) << "not a shared object";
  EXPECT_NE(message(text).find("that can be loaded"), std::string::npos) << message(text);
  EXPECT_NE(message("/lib/x86_64-linux-gnu/libm.so.6").find("gearshift_plugin"), std::string::npos);
}

TEST(Plugins, ATakenNameIsRefused) {
  Registry taken = builtin_registry();
  static Kernel mine = *builtin_registry().find(Platform::cpu, Family::bf16)->entries.front().kernel;
  mine.name = "example_bf16";
  taken.lists.front().entries.push_back({&mine, 1, 0, ""});
  // Another path, so that the file is looked at again.
  const std::string copy = ::testing::TempDir() + "/example_copy.so";
  std::ofstream(copy, std::ios::binary) << std::ifstream(plugins + "example_plugin.so", std::ios::binary).rdbuf();
  const auto registry = with_plugins(taken, {copy});
  ASSERT_FALSE(registry.ok());
  EXPECT_NE(registry.error().message().find("'example_bf16', which Gearshift has itself"), std::string::npos)
      << registry.error().message();
}

}  // namespace
}  // namespace gearshift
