// Measurements kept in the repository name kernels that exist, for families that these serve.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gearshift/kernel.h"

namespace gearshift {
namespace {

using Json = nlohmann::json;

bool is_listed(const std::string& kernel, const std::string& family, Platform platform) {
  const KernelList* list = builtin_registry().find(platform, *parse_family(family));
  if (list == nullptr) return false;
  return std::any_of(list->entries.begin(), list->entries.end(),
                     [&](const ListEntry& entry) { return entry.kernel->name == kernel; });
}

TEST(Results, NameKernelsThatExist) {
  size_t documents = 0, timed = 0;
  for (const auto& file : std::filesystem::directory_iterator(GEARSHIFT_SOURCE_DIR "/bench/results")) {
    if (file.path().extension() != ".json") continue;
    ++documents;
    SCOPED_TRACE(file.path().filename().string());
    const Json document = Json::parse(std::ifstream(file.path()));
    EXPECT_EQ(document.at("schema"), "gearshift.bench/1");
    for (const char* key : {"date", "command", "driver", "clocks", "device", "build", "plan_hash", "ceilings"})
      EXPECT_TRUE(document.contains(key)) << key;
    const bool cuda = document.at("device").at("platform") == "cuda";
    for (const Json& row : document.at("rows")) {
      if (!row.at("refused").is_null()) {
        EXPECT_TRUE(row.at("median_us").is_null());
        continue;
      }
      ++timed;
      EXPECT_EQ(row.at("ok"), true);
      ASSERT_TRUE(parse_family(row.at("family").get<std::string>()));
      EXPECT_TRUE(is_listed(row.at("kernel"), row.at("family"), cuda ? Platform::cuda : Platform::cpu)) << row;
    }
  }
  EXPECT_GT(documents, 0U);
  EXPECT_GT(timed, 0U);
}

}  // namespace
}  // namespace gearshift
