// Rows of made-up kernels, and a folder for a store's file.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "store/entry.h"

namespace gearshift {

inline StoreEntry row_of(EntryKind kind, const std::string& kernel = "kernel", int64_t m = 16) {
  StoreEntry row;
  row.kind = kind;
  row.environment = {"Stub CPU", "x86_64+avx2", 2, 0, "", "", "glibc 2.36", "libgomp 201511"};
  row.kernel = kernel;
  row.layout = "rows/1";
  row.layer_class = "bf16 n24 k64 float dense w: BF16";
  row.dtype = "BF16";
  row.threads = 2;
  row.m_min = row.m_max = m;
  row.taken = 1'700'000'000;
  if (kind == EntryKind::measurement) {
    row.mode = "eager";
    row.median_us = 12.25, row.p10_us = 12, row.p90_us = 13;
    row.samples = 25;
  }
  if (kind == EntryKind::proof) row.worst_row = 1e-3, row.tolerance = 4e-3;
  if (kind == EntryKind::quarantine)
    row.m_max = 0, row.threads = 0, row.reason = "row 3 is off", row.evidence = "seed 7";
  return row;
}

inline StoreEntry random_row(std::mt19937& random) {
  const auto pick = [&](int64_t count) { return static_cast<int64_t>(random() % static_cast<uint32_t>(count)); };
  StoreEntry row = row_of(static_cast<EntryKind>(pick(3)), "kernel" + std::to_string(pick(3)), 1 + pick(3));
  row.environment.cores = 1 + pick(2);
  row.taken += pick(3);
  if (row.kind == EntryKind::measurement) row.samples = 1 + pick(3), row.p90_us += static_cast<double>(pick(3)) / 3;
  if (row.kind == EntryKind::quarantine) row.reason += std::to_string(pick(3));
  return row;
}

class StoreFolder : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/store_" + testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
              std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name = "store.sqlite") const { return folder_ + "/" + name; }

  std::string folder_;
};

}  // namespace gearshift
