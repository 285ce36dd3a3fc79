#include "base/text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gearshift {
namespace {

TEST(NaturalLess, NumbersOfAnyLength) {
  const std::vector<std::string> ordered = {
      "",    "a",  "a.0", "a.1", "a.2", "a.2.b", "a.10", "a.99999999999999999999999", "a.100000000000000000000000",
      "a.b", "a1", "a_",  "b"};
  for (size_t i = 0; i < ordered.size(); ++i) {
    for (size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(natural_less(ordered[i], ordered[j]), i < j) << ordered[i] << " " << ordered[j];
    }
  }
  EXPECT_TRUE(natural_less("layers.2.x", "layers.10.x"));
  EXPECT_FALSE(natural_less("layers.10.x", "layers.2.x"));
  EXPECT_TRUE(natural_less("layers.01.b", "layers.1.c"));
  EXPECT_TRUE(natural_less("layers.1.b", "layers.01.c"));
  EXPECT_NE(natural_less("layers.01", "layers.1"), natural_less("layers.1", "layers.01"));
  EXPECT_TRUE(natural_less("a1", "a1b"));
  EXPECT_TRUE(natural_less("x12", "x123"));
  EXPECT_TRUE(natural_less("a\x7F", "a\xC3\xA9"));
}

TEST(NaturalLess, IsAStrictOrderOfDifferentTexts) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  const auto draw = [&] {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text += "0019.a_"[random() % 7];
    return text;
  };
  for (int i = 0; i < 50'000; ++i) {
    const std::string a = draw(), b = draw(), c = draw();
    EXPECT_EQ(natural_less(a, b) + natural_less(b, a), a == b ? 0 : 1) << a << " " << b;
    if (natural_less(a, b) && natural_less(b, c)) {
      EXPECT_TRUE(natural_less(a, c)) << a << " " << b << " " << c;
    }
  }
}

TEST(Glob, OnlyTheStarIsSpecial) {
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("**", "a.b"));
  EXPECT_TRUE(glob_match("*.mlp.*", "model.layers.0.mlp.up_proj"));
  EXPECT_TRUE(glob_match("model.*proj", "model.layers.0.q_proj"));
  EXPECT_FALSE(glob_match("model.*proj", "model.layers.0.q_proj.x"));
  EXPECT_TRUE(glob_match("a*b*c", "a_b_b_c"));
  EXPECT_FALSE(glob_match("a*b*c", "a_c_b"));
  EXPECT_TRUE(glob_match("[a]?", "[a]?"));
  EXPECT_FALSE(glob_match("[a]?", "ab"));
  EXPECT_EQ(glob_literals("*.mlp.*"), 5u);
  EXPECT_EQ(glob_literals("***"), 0u);
}

TEST(Glob, HostilePatternsEnd) {
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(glob_match(stars, std::string(20'000, 'a')));
  EXPECT_FALSE(fnmatch(stars, std::string(20'000, 'a')));
}

// Expectations are those of Python's fnmatch.fnmatchcase.
TEST(Fnmatch, AsPythonHasIt) {
  struct Row {
    const char* pattern;
    const char* text;
    bool matches;
  };
  const std::vector<Row> rows = {
      {"*", "", true},
      {"*", "a.b/c\n", true},
      {"?", "", false},
      {"?", "a", true},
      {"?", "\xC3\xA9", true},
      {"??", "\xC3\xA9", false},
      {"[abc]", "b", true},
      {"[abc]", "d", false},
      {"[a-c]x", "bx", true},
      {"[!a-c]", "b", false},
      {"[!a-c]", "d", true},
      {"[!a-c]", "", false},
      {"[]]", "]", true},
      {"[!]]", "]", false},
      {"[!]]", "a", true},
      {"[", "[", true},
      {"[a", "[a", true},
      {"[]", "[]", true},
      {"[!]", "[!]", true},
      {"[a-]", "-", true},
      {"[-a]", "-", true},
      {"[a-]", "b", false},
      {"[--a]", "0", true},
      {"[a-c-e]", "-", true},
      {"[a-c-e]", "d", false},
      {"[a-c-e]", "e", true},
      {"[z-a]", "m", false},
      {"[!z-a]", "m", true},
      {"[z-ab]", "b", true},
      {"[a--b]", "b", true},
      {"[a--b]", "a", false},
      {"[^a]", "^", true},
      {"[^a]", "b", false},
      {"[!!a]", "!", false},
      {"[!!a]", "b", true},
      {"[\\]", "\\", true},
      {"a\\*", "a\\b", true},
      {"a\\*", "a*", false},
      {"lm_head", "lm_head", true},
      {"lm_head", "xlm_head", false},
      {"model.layers.[0-9].*", "model.layers.3.mlp", true},
      {"model.layers.[0-9].*", "model.layers.13.mlp", false},
      {"*.experts.*", "a.experts.0.w1", true},
      {"[[]a]", "[a]", true},
      {"[\xC3\xA9]", "\xC3\xA9", true},
      {"*[0-9]", "abc7", true},
      {"*?", "", false},
      {"*?", "a", true},
      {"a*?b", "acb", true},
      {"a*?b", "ab", false},
  };
  for (const Row& row : rows) EXPECT_EQ(fnmatch(row.pattern, row.text), row.matches) << row.pattern << " " << row.text;
}

TEST(Regex, MatchIsAnchoredAtTheStartAndSearchIsNot) {
  const Result<Regex> regex = Regex::compile("mlp\\.(up|down)_proj", "config.json");
  ASSERT_TRUE(regex.ok());
  EXPECT_TRUE(regex->match_start("mlp.up_proj"));
  EXPECT_TRUE(regex->match_start("mlp.up_proj.weight"));
  EXPECT_FALSE(regex->match_start("model.mlp.up_proj"));
  EXPECT_TRUE(regex->search("model.mlp.up_proj"));
  EXPECT_FALSE(regex->search("model.mlp.gate_proj"));
}

TEST(Regex, AnchorsAndLookaheadsOfRealConfigs) {
  EXPECT_TRUE(Regex::compile(".*lm_head$", "f")->match_start("model.lm_head"));
  EXPECT_FALSE(Regex::compile(".*lm_head$", "f")->match_start("model.lm_head.x"));
  const Result<Regex> but = Regex::compile("^model\\.layers\\.(?!0\\.)(?:\\d+)\\..*", "f");
  EXPECT_TRUE(but->match_start("model.layers.12.mlp"));
  EXPECT_FALSE(but->match_start("model.layers.0.mlp"));
  EXPECT_TRUE(Regex::compile("\\w+", "f")->match_start("\xC3\xA9"));
  EXPECT_TRUE(Regex::compile("", "f")->match_start(""));
  EXPECT_FALSE(Regex::compile(".", "f")->search("\xFF"));
}

TEST(Regex, ErrorsSayWhere) {
  const Result<Regex> regex = Regex::compile("layers\\.(\\d+", "config.json");
  ASSERT_FALSE(regex.ok());
  EXPECT_EQ(regex.error().code, ErrorCode::damaged_checkpoint);
  EXPECT_EQ(regex.error().subject, "config.json");
  EXPECT_NE(regex.error().found.find("layers\\.(\\d+"), std::string::npos);
  EXPECT_NE(regex.error().found.find("character 12"), std::string::npos) << regex.error().found;
  EXPECT_FALSE(Regex::compile("\xFF", "f").ok());
  EXPECT_FALSE(Regex::compile(std::string(100'000, 'a'), "f").ok());
  EXPECT_FALSE(Regex::compile(std::string(10'000, '('), "f").ok());
}

// Without limits each of these takes longer than the age of the universe.
TEST(Regex, HostilePatternsDoNotMatch) {
  const std::string text = std::string(5'000, 'a') + "!";
  for (const char* pattern : {"(a+)+$", "(a|a)*$", "(a*)*b", "(?:a?){60}a{60}$", "(.*a){25}b"}) {
    const Result<Regex> regex = Regex::compile(pattern, "f");
    ASSERT_TRUE(regex.ok()) << pattern;
    EXPECT_FALSE(regex->match_start(text)) << pattern;
    EXPECT_FALSE(regex->search(text)) << pattern;
  }
}

TEST(NearNames, NearestFirst) {
  const std::vector<std::string_view> names = {"marlin", "cutlass", "cublaslt", "reference", "flashinfer_cutlass"};
  EXPECT_EQ(near_names("marlim", names), std::vector<std::string>{"marlin"});
  EXPECT_EQ(near_names("MARLIN", names), std::vector<std::string>{"marlin"});
  EXPECT_EQ(near_names("flashinfer", names), std::vector<std::string>{"flashinfer_cutlass"});
  EXPECT_EQ(near_names("cutlas", names, 1), std::vector<std::string>{"cutlass"});
  EXPECT_TRUE(near_names("zzzzzzzz", names).empty());
  EXPECT_TRUE(near_names("", names).empty());
  EXPECT_TRUE(near_names(std::string(100'000, 'x'), names).empty());
  const std::vector<std::string_view> close = {"abcdef", "abcdxx", "abcdex"};
  EXPECT_EQ(near_names("abcdef", close, 2), (std::vector<std::string>{"abcdef", "abcdex"}));
}

TEST(Text, JoinSplitLower) {
  EXPECT_EQ(join(std::vector<std::string>{}, ","), "");
  EXPECT_EQ(join(std::vector<std::string>{"a", "b"}, ", "), "a, b");
  EXPECT_EQ(split("", '.'), std::vector<std::string>{""});
  EXPECT_EQ(split("a..b.", '.'), (std::vector<std::string>{"a", "", "b", ""}));
  EXPECT_EQ(lower("NVFP4-a\xC3\x84"), "nvfp4-a\xC3\x84");
}

TEST(Text, BytesInThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(9'994), "9.99 kB");
  EXPECT_EQ(format_bytes(9'996), "10.0 kB");
  EXPECT_EQ(format_bytes(96'200'000), "96.2 MB");
  EXPECT_EQ(format_bytes(99'960'000), "100 MB");
  EXPECT_EQ(format_bytes(999'499), "999 kB");
  EXPECT_EQ(format_bytes(999'500), "1.00 MB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "18.4 EB");
}

TEST(Text, PrintableEscapes) {
  using namespace std::string_view_literals;
  EXPECT_EQ(printable("plain \xC3\xA9"), "plain \xC3\xA9");
  EXPECT_EQ(printable("a\nb\r\t\0\x1b\x7f"sv), "a\\nb\\r\\t\\x00\\x1b\\x7f");
  EXPECT_EQ(printable("\xC3\x28\xFF"), "\\xc3(\\xff");
  EXPECT_EQ(printable("\xC2\x9B"), "\\u009b");      // a terminal's control sequence introducer
  EXPECT_EQ(printable("\xE2\x80\xAE"), "\\u202e");  // turns the direction of writing
  EXPECT_EQ(printable("\xF4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");
  EXPECT_EQ(printable(""), "");
}

TEST(Text, PrintableCutsInTheMiddle) {
  EXPECT_EQ(printable("0123456789", 10), "0123456789");
  EXPECT_EQ(printable("0123456789abcdef", 13), "0123 ... cdef");
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += "a\n\xC3\xA9\xE2\x82\xAC\xFF"[random() % 8];
    const size_t limit = random() % 30;
    const std::string shown = printable(text, limit);
    EXPECT_LE(shown.size(), limit);
    EXPECT_EQ(printable(shown, std::string::npos), shown);  // nothing was cut inside a character
  }
}

TEST(Text, NumbersAreTheWholeTextOrNothing) {
  EXPECT_EQ(parse_integer("-42"), -42);
  EXPECT_EQ(parse_integer("9223372036854775807"), INT64_MAX);
  for (const char* text : {"", " 1", "1 ", "+1", "1.0", "0x1", "9223372036854775808", "1e3", "-"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
  EXPECT_EQ(parse_number("-2.5e3"), -2500.0);
  for (const char* text : {"", "nan", "inf", "1e999", "1.5x", " 1", "."}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace gearshift
