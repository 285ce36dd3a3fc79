// JSON of untrusted files as a small tree: members in file order, depth limited, duplicate keys refused, no NaN.
// Parsed through nlohmann's SAX interface, so that neither depth nor width of hostile input costs stack or time.
#pragma once

#include <initializer_list>

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
  // A value of the tree takes some 130 bytes, a member some 160: hostile text must not be able to ask for all memory.
  size_t values = 4'000'000;
};
// `subject` names the file in errors. Errors: damaged_checkpoint with line, column and what was found.
Result<Json> parse_json(std::string_view text, const std::string& subject, JsonLimits limits = {});

// The same text as events, for the reader of a large file of known structure that needs no tree (a third of the time).
// A handler that returns false ends the parse; it says why through refuse(). Depth, number of values and syntax have
// been checked before a handler is called; keys are not compared with each other.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  // null, boolean, integer, number and string; of `value` only the fields of its kind are set. It may be moved from.
  virtual bool scalar(Json& value) = 0;
  virtual bool begin_object() = 0;
  virtual bool key(std::string& key) = 0;  // may be moved from
  virtual bool end_object() = 0;
  virtual bool begin_array() = 0;
  virtual bool end_array() = 0;

  struct Refusal {
    std::string where;  // what in the file is concerned; empty: the file
    std::string found, wanted;
  };
  const Refusal& refusal() const { return refusal_; }

 protected:
  bool refuse(Refusal refusal) {
    refusal_ = std::move(refusal);
    return false;
  }

 private:
  Refusal refusal_;
};
Result<void> parse_json_events(std::string_view text, const std::string& subject, JsonEvents& events,
                               JsonLimits limits = {});

}  // namespace gearshift
