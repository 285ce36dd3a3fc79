#include "report/json_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace gearshift {
namespace {

std::string written(std::string_view text) {
  JsonWriter json;
  json.begin_array(JsonWriter::Line::single).value(text).end();
  return json.take();
}

TEST(JsonWriterTest, Layout) {
  JsonWriter json;
  json.begin_object().member("a", 1).member("b", "two").key("c").begin_array();
  json.begin_object(JsonWriter::Line::single).member("x", true).key("y").begin_array().value(1.5).null().end().end();
  json.end().key("d").begin_object().end().list("e", std::vector<int>{1, 2}).end();
  EXPECT_EQ(json.take(), R"({
  "a": 1,
  "b": "two",
  "c": [
    {"x": true, "y": [1.5, null]}
  ],
  "d": {},
  "e": [1, 2]
}
)");
}

TEST(JsonWriterTest, TextOfAnotherWriterKeepsTheIndentation) {
  JsonWriter inner(1);
  inner.begin_array().value(1).end();
  JsonWriter outer;
  outer.begin_object().key("a").raw(inner.take()).member("b", 2).end();
  EXPECT_EQ(outer.take(), "{\n  \"a\": [\n    1\n  ],\n  \"b\": 2\n}\n");
}

TEST(JsonWriterTest, Escapes) {
  EXPECT_EQ(written("a\"b\\c\nd\te\rf"), "[\"a\\\"b\\\\c\\nd\\te\\rf\"]\n");
  EXPECT_EQ(written(std::string_view("\0\x1f\x7f", 3)), "[\"\\u0000\\u001f\\u007f\"]\n");
  EXPECT_EQ(written("\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80"), "[\"\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80\"]\n");
}

TEST(JsonWriterTest, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  const std::string mark = "\xef\xbf\xbd";
  EXPECT_EQ(written("a\xff"
                    "b"),
            "[\"a" + mark + "b\"]\n");
  EXPECT_EQ(written("\xc3"), "[\"" + mark + "\"]\n");                        // cut short
  EXPECT_EQ(written("\xc0\x80"), "[\"" + mark + mark + "\"]\n");             // overlong
  EXPECT_EQ(written("\xed\xa0\x80"), "[\"" + mark + mark + mark + "\"]\n");  // surrogate
}

TEST(JsonWriterTest, EveryByteSequenceIsValidJson) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (uint64_t n = random() % 12; n > 0; --n) text += static_cast<char>(random());
    ASSERT_TRUE(nlohmann::json::accept(written(text)));
  }
}

TEST(JsonWriterTest, Numbers) {
  JsonWriter json;
  json.begin_array(JsonWriter::Line::single);
  json.value(std::numeric_limits<int64_t>::min()).value(std::numeric_limits<uint64_t>::max());
  json.value(std::numeric_limits<double>::infinity()).value(std::nan("")).value(0.1).value(1e300).value(-0.0);
  json.end();
  const auto parsed = nlohmann::json::parse(json.take());
  EXPECT_EQ(parsed[0].get<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(parsed[1].get<uint64_t>(), std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(parsed[2].is_null());
  EXPECT_TRUE(parsed[3].is_null());
  EXPECT_EQ(parsed[4].get<double>(), 0.1);
  EXPECT_EQ(parsed[5].get<double>(), 1e300);
}

TEST(JsonWriterTest, Rounded) {
  EXPECT_EQ(rounded(1.23456, 3), 1.235);
  EXPECT_EQ(rounded(-1.0005, 2), -1.0);
  EXPECT_EQ(rounded(1e307, 6), 1e307);
  EXPECT_TRUE(std::isnan(rounded(std::nan(""), 3)));
}

}  // namespace
}  // namespace gearshift
