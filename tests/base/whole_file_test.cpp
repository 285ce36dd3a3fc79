#include "base/whole_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace gearshift {
namespace {

class WholeFileTest : public testing::Test {
 protected:
  WholeFileTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gearshift-file-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~WholeFileTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* file) const { return (folder_ / file).string(); }
  size_t files() const { return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {})); }
  static std::string text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder_;
};

TEST_F(WholeFileTest, AppearsWhenFinished) {
  {
    WholeFile file(path("a"));
    ASSERT_TRUE(file.write("half").ok());
    EXPECT_FALSE(std::filesystem::exists(path("a")));
  }
  EXPECT_EQ(files(), 0u) << "an abandoned file leaves nothing";
  ASSERT_TRUE(write_whole_file(path("a"), "old").ok());
  WholeFile file(path("a"));
  ASSERT_TRUE(file.write("new").ok());
  EXPECT_EQ(text(path("a")), "old");
  ASSERT_TRUE(file.finish().ok());
  EXPECT_EQ(text(path("a")), "new");
  EXPECT_EQ(files(), 1u);
  ASSERT_TRUE(write_whole_file(path("empty"), "").ok());
  EXPECT_EQ(text(path("empty")), "");
}

TEST_F(WholeFileTest, LinksAndPipesStay) {
  ASSERT_TRUE(write_whole_file(path("real"), "old").ok());
  std::filesystem::create_symlink("real", path("link"));
  ASSERT_TRUE(write_whole_file(path("link"), "new").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(path("link")));
  EXPECT_EQ(text(path("real")), "new");
  EXPECT_TRUE(write_whole_file("/dev/null", "gone").ok());
  struct stat status {};
  ASSERT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));
}

TEST_F(WholeFileTest, FailuresNameTheFile) {
  for (const std::string& bad : {path("no/such/file"), folder_.string(), std::string("/dev/full")}) {
    const auto written = write_whole_file(bad, "x");
    ASSERT_FALSE(written.ok()) << bad;
    EXPECT_EQ(written.error().code, ErrorCode::runtime);
    EXPECT_EQ(written.error().subject, bad);
  }
  EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace gearshift
