// JSON of untrusted files as a small tree: members in file order, depth limited, duplicate keys refused, no NaN.
// Parsed through nlohmann's SAX interface, so that neither depth nor width of hostile input costs stack or time.
#pragma once

#include "gearshift/base.h"

namespace gearshift {

class Json {
 public:
  enum class Kind : uint8_t { null, boolean, integer, number, string, array, object };
  using Member = std::pair<std::string, Json>;

  Kind kind = Kind::null;
  bool boolean = false;
  int64_t integer = 0;  // kind integer: the number, where it fits in int64 (otherwise kind is number)
  double number = 0;    // kinds integer and number
  std::string string;
  std::vector<Json> items;      // arrays
  std::vector<Member> members;  // objects, in file order

  bool is(Kind k) const { return kind == k; }
  bool is_null() const { return kind == Kind::null; }
  // Member by name, linear for few members and by binary search on an index for many; nullptr when there is none or
  // this is no object.
  const Json* find(std::string_view key) const;
  // A path of members: at({"text_config", "quantization_config"}); nullptr where one is missing.
  const Json* at(std::initializer_list<std::string_view> path) const;
  // Typed access with a default; wrong types give the default.
  std::string_view text_or(std::string_view key, std::string_view otherwise) const;
  int64_t integer_or(std::string_view key, int64_t otherwise) const;
  bool boolean_or(std::string_view key, bool otherwise) const;

 private:
  friend class JsonBuilder;
  std::vector<uint32_t> index_;  // members sorted by key; filled for objects of many members
};
std::string_view name(Json::Kind kind);

struct JsonLimits {
  int depth = 64;
  size_t values = 20'000'000;
};
// `subject` names the file in errors. Errors: damaged_checkpoint with line, column and what was found.
Result<Json> parse_json(std::string_view text, const std::string& subject, JsonLimits limits = {});

}  // namespace gearshift
