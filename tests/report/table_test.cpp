#include "report/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "base/text.h"
#include "report/widest.h"

namespace gearshift {
namespace {

TEST(TableTest, DisplayWidth) {
  EXPECT_EQ(display_width(""), 0U);
  EXPECT_EQ(display_width("abc"), 3U);
  EXPECT_EQ(display_width("\xc3\xa9"), 1U);          // é
  EXPECT_EQ(display_width("e\xcc\x81"), 1U);         // e and a combining accent
  EXPECT_EQ(display_width("\xe6\xbc\xa2"), 2U);      // a Han character
  EXPECT_EQ(display_width("\xf0\x9f\x98\x80"), 2U);  // an emoji
}

TEST(TableTest, CutKeepsBothEnds) {
  EXPECT_EQ(cut_middle("model.layers.0.mlp.up_proj", 40), "model.layers.0.mlp.up_proj");
  EXPECT_EQ(cut_middle("abcdefghij", 6), "ab..ij");
  EXPECT_EQ(cut_middle("abcdefghij", 7), "ab..hij");
  EXPECT_EQ(cut_middle("abcdefghij", 2), "ab");
  EXPECT_EQ(cut_middle("abcdefghij", 0), "");
  for (size_t width = 0; width < 12; ++width) {
    EXPECT_LE(
        display_width(cut_middle("\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", width)),
        width);
  }
}

TEST(TableTest, Wrap) {
  EXPECT_EQ(wrap("", 10), std::vector<std::string>{});
  EXPECT_EQ(wrap("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrap("abcdefgh ij", 4), (std::vector<std::string>{"abcd", "efgh", "ij"}));
  EXPECT_EQ(wrap("--disable one,two,three", 9), (std::vector<std::string>{"--disable", "one,two,", "three"}));
  EXPECT_EQ(wrapped_paragraph("note  ", "one two three", 17), "note  one two\n      three\n");
}

TEST(TableTest, AlignsByKind) {
  Table table({{"name", Table::Kind::name}, {"n", Table::Kind::number}, {"why", Table::Kind::sentence}});
  table.row({"a", "1", "short"});
  table.row({"bcdef", "23", ""});
  EXPECT_EQ(table.render(80),
            "name    n  why\n"
            "-----  --  -----\n"
            "a       1  short\n"
            "bcdef  23\n");
}

TEST(TableTest, ASentenceGoesOnBesideTheRowsBelow) {
  Table table({{"m", Table::Kind::number}, {"why", Table::Kind::sentence}});
  table.row({"1", "first in the list that the contract allows here"});
  table.row({"8", ""});
  table.section("next group");
  table.row({"16", "x"});
  EXPECT_EQ(table.render(30),
            " m  why\n"
            "--  --------------------------\n"
            " 1  first in the list that the\n"
            " 8  contract allows here\n"
            "next group\n"
            "16  x\n");
}

TEST(TableTest, ControlCharactersNeverReachTheTerminal) {
  Table table({{"name", Table::Kind::name}});
  table.row({"a\x1b[31mb\nc\xff"});
  table.section("\x1b]0;title\x07");
  const std::string text = table.render(80);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\xff'), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(TableTest, FitsEveryWidth) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  const std::vector<std::string> pieces = {"model.layers.12.", "\xe6\xbc\xa2", "self_attn", " ",
                                           "\xc3\xa9",         "qkv_proj",     "e\xcc\x81"};
  for (int round = 0; round < 20; ++round) {
    using Kind = Table::Kind;
    Table table({{"layers", Kind::name},
                 {"count", Kind::number},
                 {"shape", Kind::word},
                 {"kernel", Kind::name},
                 {"why", Kind::sentence}});
    for (int i = 0; i < 4; ++i) {
      std::string name, why;
      for (uint64_t n = random() % 12; n > 0; --n) name += pieces[random() % pieces.size()];
      for (uint64_t n = random() % 40; n > 0; --n) why += pieces[random() % pieces.size()];
      table.row({name, std::to_string(random() % 10000), "34816 x 5120", name, why});
      if (i == 1) table.section(why);
    }
    for (size_t width = 40; width <= 200; width += 7)
      ASSERT_LE(widest(table.render(width)), width) << table.render(width);
  }
}

TEST(TableTest, NothingIsLostWhereColumnsDoNotFit) {
  Table table({{"a", Table::Kind::word}, {"b", Table::Kind::word}});
  table.row({std::string(30, 'x'), std::string(30, 'y')});
  EXPECT_EQ(table.render(40), "- a: " + std::string(30, 'x') + "\n  b: " + std::string(30, 'y') + "\n");
}

}  // namespace
}  // namespace gearshift
