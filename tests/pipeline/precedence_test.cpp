#include "gearshift/pipeline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "pipeline/options.h"

namespace gearshift {
namespace {

Options from_command_line(const std::vector<std::pair<std::string, std::vector<std::string>>>& options) {
  Options result;
  for (const auto& [name, values] : options) result[name] = {values, "command line", ""};
  return result;
}

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

// A folder with a gearshift.toml, gone when the test ends.
class ConfigFolder {
 public:
  ConfigFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gearshift-config-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ConfigFolder(const ConfigFolder&) = delete;
  ConfigFolder& operator=(const ConfigFolder&) = delete;
  ~ConfigFolder() { std::filesystem::remove_all(folder_); }
  std::string write(std::string_view text) const {
    const std::filesystem::path path = folder_ / "gearshift" / "gearshift.toml";
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

TEST(Environment, FillsWhereTheCommandLineIsSilent) {
  const Options options = with_environment(from_command_line({{"linear-backend", {"native"}}}),
                                           environment({{"GEARSHIFT_LINEAR_BACKEND", "marlin"},
                                                        {"GEARSHIFT_STRICT", "yes"},
                                                        {"GEARSHIFT_BATCH", ""},
                                                        {"GEARSHIFT_LAYER", "a=native,b=marlin"},
                                                        {"GEARSHIFT_NO_FUSE", "true"},
                                                        {"GEARSHIFT_HELP", "1"}}));
  EXPECT_EQ(options.at("linear-backend").values, (std::vector<std::string>{"native"}));
  EXPECT_EQ(options.at("linear-backend").source, "command line");
  EXPECT_EQ(options.at("strict").source, "environment");
  EXPECT_EQ(options.count("batch"), 0u);
  const auto settings = read_settings(options);
  ASSERT_TRUE(settings.ok()) << settings.error().message();
  EXPECT_TRUE(settings->policy.strict);
  EXPECT_EQ(settings->policy.layers.size(), 2u);
  EXPECT_FALSE(settings->fuse);
}

TEST(Environment, FuseAndNoFuseAreOneOption) {
  const Options options =
      with_environment(from_command_line({{"fuse", {"1"}}}), environment({{"GEARSHIFT_NO_FUSE", "1"}}));
  EXPECT_TRUE(read_settings(options)->fuse);
  EXPECT_FALSE(read_settings(with_environment({}, environment({{"GEARSHIFT_FUSE", "0"}})))->fuse);
}

TEST(Environment, BooleansAndErrorsNameTheVariable) {
  for (const char* word : {"1", "true", "YES"})
    EXPECT_TRUE(read_settings(with_environment({}, environment({{"GEARSHIFT_STRICT", word}})))->policy.strict);
  for (const char* word : {"0", "False", "no"})
    EXPECT_FALSE(read_settings(with_environment({}, environment({{"GEARSHIFT_STRICT", word}})))->policy.strict);
  const auto wrong = read_settings(with_environment({}, environment({{"GEARSHIFT_SINGLE_KERNEL", "on"}})));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().subject, "GEARSHIFT_SINGLE_KERNEL");
}

TEST(Precedence, EffectiveOnesShowValueAndSource) {
  const Options effective = effective_options(
      with_environment(from_command_line({{"batch", {"4"}}}), environment({{"GEARSHIFT_THREADS", "2"}})));
  EXPECT_EQ(effective.at("batch").source, "command line");
  EXPECT_EQ(effective.at("threads").source, "environment");
  EXPECT_EQ(effective.at("arithmetic").source, "default");
  EXPECT_EQ(effective.at("arithmetic").values, (std::vector<std::string>{"higher"}));
  EXPECT_EQ(effective.count("no-fuse"), 0u);
}

// CASE-55: a file says A, the environment B, the command line C, a call D.
TEST(Case55, CallOverCommandLineOverEnvironmentOverFile) {
  const ConfigFolder folder;
  folder.write("linear-backend = 'a'\nmoe_backend = 'a'\nbatch = [1, 2]\nseed = 9\n");
  const Environment variables = environment({{"XDG_CONFIG_HOME", folder.path()},
                                             {"GEARSHIFT_LINEAR_BACKEND", "b"},
                                             {"GEARSHIFT_MOE_BACKEND", "b"},
                                             {"GEARSHIFT_BATCH", "3"}});
  const Options call = {{"linear-backend", {{"d"}, "call", ""}}};
  const Options line = from_command_line({{"linear-backend", {"c"}}, {"moe-backend", {"c"}}});
  const auto options = complete_options(over(call, line), variables);
  ASSERT_TRUE(options.ok()) << options.error().message();
  const Options effective = effective_options(*options);
  const auto says = [&](const char* name, const char* value, const char* source) {
    EXPECT_EQ(effective.at(name).values.front(), value) << name;
    EXPECT_EQ(effective.at(name).source, source) << name;
  };
  says("linear-backend", "d", "call");
  says("moe-backend", "c", "command line");
  says("batch", "3", "environment");
  says("seed", "9", "file");
  says("arithmetic", "higher", "default");
  EXPECT_NE(effective.at("seed").written.find("gearshift.toml:4: seed"), std::string::npos);
}

TEST(ConfigFile, HasEveryKindOfOption) {
  const ConfigFolder folder;
  const std::string path = folder.write(
      "# ours\nbatch = [1, 256]\ndisable = [\"a*\", 'b']\nlayer = ['*.up=native', '*.down=auto']\nstrict = true\n"
      "threads = 3\nlinear_backend = 'native,bf16=auto'\nfuse = false\ndtype = 'fp16'\n");
  const auto options = with_config_file({}, path);
  ASSERT_TRUE(options.ok()) << options.error().message();
  const auto settings = read_settings(*options);
  ASSERT_TRUE(settings.ok()) << settings.error().message();
  EXPECT_EQ(settings->policy.batch, (std::vector<int64_t>{1, 256}));
  EXPECT_EQ(settings->policy.disable, (std::vector<std::string>{"a*", "b"}));
  EXPECT_EQ(settings->policy.layers.size(), 2u);
  EXPECT_TRUE(settings->policy.strict);
  EXPECT_EQ(settings->threads, 3);
  EXPECT_EQ(settings->policy.linear.global, "native");
  EXPECT_EQ(settings->policy.linear.families.at(Family::bf16), "auto");
  EXPECT_FALSE(settings->fuse);
  EXPECT_EQ(settings->dtype, DType::f16);
  // --fuse on the command line speaks for --no-fuse too.
  const auto fused = with_config_file(from_command_line({{"no-fuse", {"1"}}}), path);
  ASSERT_TRUE(fused.ok());
  EXPECT_EQ(fused->count("fuse"), 0u);
}

TEST(ConfigFile, ErrorsNameFileLineAndOption) {
  const std::vector<std::tuple<std::string, std::string, std::string>> wrong = {
      {"\nlinear-backed = 'native'", "gearshift.toml:2", "did you mean linear-backend?"},
      {"help = true", "gearshift.toml:1", "unknown key 'help'"},
      {"a = [1, 2", "gearshift.toml:1", "TOML"},
      {"\n\n[policy]\nstrict = true", "gearshift.toml:3", "unknown key 'policy'"},
      {"strict = 1", "gearshift.toml:1: strict", "true or false"},
      {"batch = 1.5", "gearshift.toml:1: batch", "a number with a fraction"},
      {"batch = [1,\n [2]]", "gearshift.toml:2: batch", "a list"},
      {"device = ['cpu']", "gearshift.toml:1: device", "a list"},
      {"seed = 1979-05-27", "gearshift.toml:1: seed", "a date or time"},
      {"linear-backend = 'a'\nlinear_backend = 'b'", "linear-backend", "twice"},
      {"fuse = true\nno-fuse = true", "no-fuse", "one of the two"},
      {"batch = 1\nbatch = 2", "gearshift.toml:2", "TOML"},
      {"\xff\xfe", "gearshift.toml:1", "TOML"},
      {"a = " + std::string(4000, '['), "gearshift.toml:1", "TOML"},
      {"\x1b[31m = 1", "gearshift.toml:1", "TOML"}};
  for (const auto& [text, where, word] : wrong) {
    const ConfigFolder folder;
    const auto options = with_config_file({}, folder.write(text));
    ASSERT_FALSE(options.ok()) << text;
    EXPECT_EQ(exit_code(options.error().code), 2);
    EXPECT_NE(options.error().message().find(where), std::string::npos) << options.error().message();
    EXPECT_NE(options.error().message().find(word), std::string::npos) << options.error().message();
    EXPECT_EQ(options.error().message().find('\x1b'), std::string::npos);
  }
  // A value that parses and means nothing names its line when it is read.
  const ConfigFolder folder;
  const auto settings = read_settings(*with_config_file({}, folder.write("\nbatch = 0")));
  ASSERT_FALSE(settings.ok());
  EXPECT_NE(settings.error().subject.find("gearshift.toml:2: batch"), std::string::npos) << settings.error().subject;
}

TEST(ConfigFile, WhatIsNoFileIsRefused) {
  const ConfigFolder folder;
  std::filesystem::create_directories(folder.path() + "/gearshift/gearshift.toml");
  const auto options = complete_options({}, environment({{"XDG_CONFIG_HOME", folder.path()}}));
  ASSERT_FALSE(options.ok());
  EXPECT_EQ(exit_code(options.error().code), 2);
  EXPECT_TRUE(complete_options({}, environment({{"HOME", folder.path()}})).ok());
  EXPECT_TRUE(complete_options({}, environment({})).ok());
  const std::string huge = folder.path() + "/huge.toml";
  std::ofstream(huge) << std::string(2 << 20, '#');
  EXPECT_FALSE(with_config_file({}, huge).ok());
}

TEST(Environment, UnknownVariablesAreNamed) {
  const auto unknown = unknown_variables({"PATH", "GEARSHIFT_BATCH", "GEARSHIFT_LINEAR_BACKED", "GEARSHIFT_XYZZY"});
  ASSERT_EQ(unknown.size(), 2u);
  EXPECT_TRUE(unknown[0].starts_with("GEARSHIFT_LINEAR_BACKED: did you mean GEARSHIFT_LINEAR_BACKEND")) << unknown[0];
  EXPECT_EQ(unknown[1], "GEARSHIFT_XYZZY");
}

// One table: names are unique, defaults parse, each option can be written everywhere.
TEST(OptionTable, EveryEntryIsWhole) {
  std::set<std::string_view> names;
  for (const OptionSpec& spec : all_options()) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    EXPECT_FALSE(spec.help.empty()) << spec.name;
    EXPECT_EQ(spec.argument.empty(), spec.kind == OptionKind::flag) << spec.name;
    EXPECT_EQ(find_option(spec.name), &spec);
  }
  EXPECT_EQ(variable_of("linear-backend"), "GEARSHIFT_LINEAR_BACKEND");
  EXPECT_EQ(find_option("linear_backend"), nullptr);
}

}  // namespace
}  // namespace gearshift
