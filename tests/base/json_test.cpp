#include "base/json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace gearshift {
namespace {

std::string refusal(std::string_view text, JsonLimits limits = {}) {
  const Result<Json> json = parse_json(text, "file.json", limits);
  if (json.ok()) return "accepted";
  EXPECT_EQ(json.error().code, ErrorCode::damaged_checkpoint);
  EXPECT_EQ(json.error().subject, "file.json");
  EXPECT_EQ(json.error().message().find('\n'), std::string::npos);
  return json.error().message();
}

TEST(Json, KindsAndAccess) {
  const Result<Json> json = parse_json(
      R"({"n":null,"t":true,"i":-5,"d":2.5,"s":"x","a":[1,[2]],"o":{"q":{"r":7}},"big":9223372036854775808})", "f");
  ASSERT_TRUE(json.ok());
  EXPECT_TRUE(json->find("n")->is_null());
  EXPECT_TRUE(json->boolean_or("t", false));
  EXPECT_EQ(json->integer_or("i", 0), -5);
  EXPECT_EQ(json->find("i")->number, -5.0);
  EXPECT_EQ(json->find("d")->number, 2.5);
  EXPECT_TRUE(json->find("d")->is(Json::Kind::number));
  EXPECT_EQ(json->text_or("s", ""), "x");
  EXPECT_EQ(json->find("a")->items.size(), 2u);
  EXPECT_EQ(json->at({"o", "q"})->integer_or("r", 0), 7);
  EXPECT_EQ(json->at({"o", "missing", "r"}), nullptr);
  EXPECT_TRUE(json->find("big")->is(Json::Kind::number));
  EXPECT_EQ(json->find("big")->number, 9223372036854775808.0);
  EXPECT_EQ(json->text_or("i", "other"), "other");
  EXPECT_EQ(json->integer_or("d", 3), 3);
  EXPECT_TRUE(json->boolean_or("absent", true));
  EXPECT_EQ(json->find("s")->find("x"), nullptr);
  EXPECT_EQ(json->members[0].first, "n");
  EXPECT_EQ(json->members.back().first, "big");
}

TEST(Json, ScalarsCarryNothingOfEarlierScalars) {
  const Result<Json> json = parse_json(R"(["text", 7, true, null, 0.5])", "f");
  ASSERT_TRUE(json.ok());
  EXPECT_TRUE(json->items[1].string.empty());
  EXPECT_EQ(json->items[2].integer, 0);
  EXPECT_FALSE(json->items[3].boolean);
  EXPECT_EQ(json->items[4].integer, 0);
}

TEST(Json, WideObjectsAreFoundByIndexAndKeepTheirOrder) {
  std::string text = "{";
  for (int i = 999; i >= 0; --i) text += fmt::format(R"({}"key{}":{})", text.size() > 1 ? "," : "", i, i);
  const Result<Json> json = parse_json(text + "}", "f");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->members[0].first, "key999");
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(json->integer_or("key" + std::to_string(i), -1), i);
  EXPECT_EQ(json->find("key1000"), nullptr);
  EXPECT_EQ(json->find(""), nullptr);
}

TEST(Json, DuplicateKeysAreNamed) {
  EXPECT_NE(refusal(R"({"a":1,"weight":2,"weight":3})").find("key \"weight\" twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"a":{"b":1,"b":1}})").find("key \"b\" twice"), std::string::npos);
  EXPECT_NE(refusal(R"({"a":1,"\u0061":2})").find("key \"a\" twice"), std::string::npos);
  std::string wide = "{";
  for (int i = 0; i < 100; ++i) wide += fmt::format(R"("k{}":0,)", i);
  EXPECT_NE(refusal(wide + R"("k50":1})").find("key \"k50\" twice"), std::string::npos);
  EXPECT_EQ(refusal(R"([{"a":1},{"a":1}])"), "accepted");
}

TEST(Json, SyntaxErrorsSayWhere) {
  EXPECT_NE(refusal("{\n  \"a\": }").find("line 2, column 8"), std::string::npos) << refusal("{\n  \"a\": }");
  EXPECT_NE(refusal("").find("line 1"), std::string::npos);
  for (const std::string_view text : {"{", "[1,]", "{\"a\":1,}", "nul", "\"open", "1 2", "{} x", "// comment\n1",
                                      "{'a':1}", "[01]", "[+1]", "[1.]"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
}

TEST(Json, NumbersThatAreNoNumbersAreRefused) {
  for (const std::string_view text : {"NaN", "[Infinity]", "{\"a\":-Infinity}", "1e999", "-1e999", "inf", "0x10"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
  EXPECT_EQ(refusal("1e-999"), "accepted");
}

TEST(Json, BytesThatAreNoTextAreRefused) {
  using namespace std::string_view_literals;
  for (const std::string_view text : {"\"\xFF\""sv, "\"\xC0\x80\""sv, "\"\xED\xA0\x80\""sv, "\"\xE2\x82\""sv,
                                      "\"\\ud800\""sv, "\"a\0b\""sv, "{}\0"sv, "{}\0garbage"sv, "\"\n\""sv}) {
    EXPECT_NE(refusal(text), "accepted");
  }
}

TEST(Json, DepthIsLimited) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(refusal(nested(64)), "accepted");
  EXPECT_NE(refusal(nested(65)).find("64 levels"), std::string::npos);
  EXPECT_NE(refusal(std::string(10'000'000, '[')).find("64 levels"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_NE(refusal(objects).find("64 levels"), std::string::npos);
  EXPECT_EQ(refusal("[]", {0, 10}).find("accepted"), std::string::npos);
}

TEST(Json, ValuesAreLimited) {
  EXPECT_EQ(refusal("[1,2,3]", {64, 4}), "accepted");
  EXPECT_NE(refusal("[1,2,3,4]", {64, 4}).find("more than 4 values"), std::string::npos);
}

// Random documents, written by another library, are read back with the same values.
nlohmann::json random_document(std::mt19937& random, int depth) {
  switch (random() % (depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<int64_t>((static_cast<uint64_t>(random()) << 32) | random());
    case 3:
      return std::uniform_real_distribution<double>(-1e6, 1e6)(random);
    case 4: {
      std::string text;
      for (size_t i = random() % 12; i > 0; --i) text += static_cast<char>(random() % 0x80);
      return text;
    }
    case 5: {
      nlohmann::json array = nlohmann::json::array();
      for (size_t i = random() % 5; i > 0; --i) array.push_back(random_document(random, depth - 1));
      return array;
    }
    default: {
      nlohmann::json object = nlohmann::json::object();
      for (size_t i = random() % 40; i > 0; --i) object[std::to_string(random())] = random_document(random, depth - 1);
      return object;
    }
  }
}

void expect_equal(const Json& json, const nlohmann::json& other) {
  if (other.is_null()) {
    EXPECT_TRUE(json.is_null());
  }
  if (other.is_boolean()) {
    EXPECT_EQ(json.boolean, other.get<bool>());
  }
  if (other.is_number_integer()) {
    EXPECT_EQ(json.integer, other.get<int64_t>());
  }
  if (other.is_number_float()) {
    EXPECT_EQ(json.number, other.get<double>());
  }
  if (other.is_string()) {
    EXPECT_EQ(json.string, other.get<std::string>());
  }
  if (other.is_array()) {
    ASSERT_EQ(json.items.size(), other.size());
    for (size_t i = 0; i < other.size(); ++i) expect_equal(json.items[i], other[i]);
  }
  if (other.is_object()) {
    ASSERT_EQ(json.members.size(), other.size());
    for (const auto& [key, value] : other.items()) {
      ASSERT_NE(json.find(key), nullptr);
      expect_equal(*json.find(key), value);
    }
  }
}

TEST(Json, RandomDocumentsReadBack) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    const nlohmann::json document = random_document(random, 3);
    const Result<Json> json = parse_json(document.dump(), "f");
    ASSERT_TRUE(json.ok()) << json.error().message();
    expect_equal(*json, document);
  }
}

TEST(Json, EveryPrefixOfADocumentIsRefused) {
  const std::string text = R"({"a":[1,2.5,"x\u00e9"],"b":{"c":null,"d":true}})";
  for (size_t i = 0; i < text.size(); ++i) EXPECT_NE(refusal(text.substr(0, i)), "accepted") << i;
  EXPECT_EQ(refusal(text), "accepted");
}

}  // namespace
}  // namespace gearshift
