// Measurements kept in the repository name kernels that exist, for families that these serve.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gearshift/kernel.h"

namespace gearshift {
namespace {

using Json = nlohmann::json;

bool is_listed(const std::string& kernel, Family family) {
  for (const KernelList& list : builtin_registry().lists) {
    if (list.family != family) continue;
    for (const ListEntry& entry : list.entries) {
      if (entry.kernel->name == kernel) return true;
    }
  }
  return false;
}

TEST(Results, NameKernelsThatExist) {
  size_t documents = 0, timed = 0;
  for (const auto& file : std::filesystem::directory_iterator(GEARSHIFT_SOURCE_DIR "/bench/results")) {
    if (file.path().extension() != ".json") continue;
    ++documents;
    SCOPED_TRACE(file.path().filename().string());
    const Json document = Json::parse(std::ifstream(file.path()));
    EXPECT_EQ(document.at("schema"), "gearshift.bench/1");
    for (const char* key : {"date", "command", "driver", "clocks", "device", "build", "ceilings"})
      EXPECT_TRUE(document.contains(key)) << key;
    for (const Json& row : document.at("rows")) {
      if (row.at("median_us").is_null()) {
        EXPECT_TRUE(row.contains("refused") && !row.at("refused").is_null()) << row;
        continue;
      }
      ++timed;
      EXPECT_NE(row.at("ok"), false);
      const auto family = parse_family(row.at("family").get<std::string>());
      ASSERT_TRUE(family) << row;
      EXPECT_TRUE(is_listed(row.at("kernel"), *family)) << row;
    }
  }
  EXPECT_GT(documents, 0U);
  EXPECT_GT(timed, 0U);
}

}  // namespace
}  // namespace gearshift
