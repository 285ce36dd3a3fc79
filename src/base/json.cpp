#include "base/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace gearshift {
namespace {

// Objects with more members than this get an index: below it a linear look is as fast.
constexpr size_t kIndexFrom = 16;

// Walks the text and tells the builder how far the lexer has read, which SAX events do not say.
class TrackedText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackedText(const char* at, const char** reached) : at_(at), reached_(reached) {}
  reference operator*() const { return *at_; }
  TrackedText& operator++() {
    *reached_ = ++at_;
    return *this;
  }
  bool operator==(const TrackedText& other) const { return at_ == other.at_; }
  bool operator!=(const TrackedText& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** reached_;
};

std::string position(std::string_view text, size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t newline = before.rfind('\n');
  const size_t column = newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return fmt::format("line {}, column {}", line, std::max<size_t>(column, 1));
}

}  // namespace

// Receives nlohmann's events and builds the tree bottom-up: only containers that are still open are on the stack.
class JsonBuilder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  explicit JsonBuilder(JsonLimits limits) : limits_(limits) {}

  bool null() { return add(Json{}); }
  bool boolean(bool value) {
    Json json;
    json.kind = Json::Kind::boolean;
    json.boolean = value;
    return add(std::move(json));
  }
  bool number_integer(number_integer_t value) {
    Json json;
    json.kind = Json::Kind::integer;
    json.integer = value;
    json.number = static_cast<double>(value);
    return add(std::move(json));
  }
  bool number_unsigned(number_unsigned_t value) {
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) return number_integer(static_cast<int64_t>(value));
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(number_float_t value, const string_t& /*text*/) {
    Json json;
    json.kind = Json::Kind::number;
    json.number = value;
    return add(std::move(json));
  }
  bool string(string_t& value) {
    Json json;
    json.kind = Json::Kind::string;
    json.string = std::move(value);
    return add(std::move(json));
  }
  bool binary(binary_t& /*value*/) { return refuse("binary data", "JSON text"); }
  bool start_object(size_t /*elements*/) { return start(Json::Kind::object); }
  bool start_array(size_t /*elements*/) { return start(Json::Kind::array); }
  bool key(string_t& value) {
    keys_.back() = std::move(value);
    return true;
  }
  bool end_object() {
    Json& object = open_.back();
    const Json::Member* twice = object.members.size() <= kIndexFrom ? few_keys_twice(object) : index_keys(object);
    if (twice != nullptr) {
      return refuse(fmt::format("key \"{}\" twice in one object", printable(twice->first)), "every key once");
    }
    return end();
  }
  bool end_array() { return end(); }
  bool parse_error(size_t /*position*/, const std::string& token, const nlohmann::detail::exception& error) {
    // The exception's text has an address-like prefix and a position of its own; the sentence after them is the reason.
    const std::string_view text = error.what();
    const size_t reason = text.find(": ");
    found_ = reason == std::string_view::npos ? "" : printable(text.substr(reason + 2));
    if (found_.empty()) found_ = fmt::format("\"{}\"", printable(token));
    wanted_ = "JSON";
    return false;
  }

  Json& root() { return root_; }
  const std::string& found() const { return found_; }
  const std::string& wanted() const { return wanted_; }

 private:
  static const Json::Member* few_keys_twice(const Json& object) {
    for (size_t i = 1; i < object.members.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (object.members[i].first == object.members[j].first) return &object.members[i];
      }
    }
    return nullptr;
  }
  static const Json::Member* index_keys(Json& object) {
    const auto& members = object.members;
    auto& index = object.index_;
    index.resize(members.size());
    for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<uint32_t>(i);
    std::sort(index.begin(), index.end(),
              [&members](uint32_t a, uint32_t b) { return members[a].first < members[b].first; });
    for (size_t i = 1; i < index.size(); ++i) {
      if (members[index[i]].first == members[index[i - 1]].first) return &members[index[i]];
    }
    return nullptr;
  }
  bool refuse(std::string found, std::string wanted) {
    found_ = std::move(found);
    wanted_ = std::move(wanted);
    return false;
  }
  bool count() {
    if (values_++ < limits_.values) return true;
    return refuse(fmt::format("more than {} values", limits_.values), "fewer");
  }
  bool start(Json::Kind kind) {
    if (open_.size() >= static_cast<size_t>(std::max(limits_.depth, 0))) {
      return refuse(fmt::format("more than {} levels of nesting", limits_.depth), "fewer");
    }
    if (!count()) return false;
    open_.emplace_back().kind = kind;
    keys_.emplace_back();
    return true;
  }
  bool end() {
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    attach(std::move(done));
    return true;
  }
  bool add(Json value) {
    if (!count()) return false;
    attach(std::move(value));
    return true;
  }
  void attach(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().kind == Json::Kind::array) {
      open_.back().items.push_back(std::move(value));
    } else {
      open_.back().members.emplace_back(std::move(keys_.back()), std::move(value));
    }
  }

  JsonLimits limits_;
  size_t values_ = 0;
  Json root_;
  std::vector<Json> open_;
  std::vector<std::string> keys_;  // of the member being read, one for each open container
  std::string found_, wanted_;
};

std::string_view name(Json::Kind kind) {
  switch (kind) {
    case Json::Kind::null:
      return "null";
    case Json::Kind::boolean:
      return "boolean";
    case Json::Kind::integer:
      return "integer";
    case Json::Kind::number:
      return "number";
    case Json::Kind::string:
      return "string";
    case Json::Kind::array:
      return "array";
    case Json::Kind::object:
      return "object";
  }
  return "null";
}

const Json* Json::find(std::string_view key) const {
  if (index_.empty()) {
    for (const Member& member : members) {
      if (member.first == key) return &member.second;
    }
    return nullptr;
  }
  const auto at = std::lower_bound(index_.begin(), index_.end(), key,
                                   [this](uint32_t i, std::string_view k) { return members[i].first < k; });
  if (at == index_.end() || members[*at].first != key) return nullptr;
  return &members[*at].second;
}

const Json* Json::at(std::initializer_list<std::string_view> path) const {
  const Json* json = this;
  for (const std::string_view key : path) {
    json = json->find(key);
    if (json == nullptr) return nullptr;
  }
  return json;
}

std::string_view Json::text_or(std::string_view key, std::string_view otherwise) const {
  const Json* json = find(key);
  return json != nullptr && json->kind == Kind::string ? std::string_view(json->string) : otherwise;
}

int64_t Json::integer_or(std::string_view key, int64_t otherwise) const {
  const Json* json = find(key);
  return json != nullptr && json->kind == Kind::integer ? json->integer : otherwise;
}

bool Json::boolean_or(std::string_view key, bool otherwise) const {
  const Json* json = find(key);
  return json != nullptr && json->kind == Kind::boolean ? json->boolean : otherwise;
}

Result<Json> parse_json(std::string_view text, const std::string& subject, JsonLimits limits) {
  const auto refuse = [&](size_t offset, const std::string& found, const std::string& wanted) {
    return ErrorInfo{ErrorCode::damaged_checkpoint, subject, found + " at " + position(text, offset), wanted, "", {}};
  };
  // nlohmann takes a NUL for the end of its input, and would accept whatever follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return refuse(nul + 1, "a byte of value 0", "JSON");
  }
  JsonBuilder builder(limits);
  const char* reached = text.data();
  const TrackedText begin(text.data(), &reached);
  const TrackedText end(text.data() + text.size(), &reached);
  if (!nlohmann::json::sax_parse(begin, end, &builder)) {
    return refuse(static_cast<size_t>(reached - text.data()), builder.found(), builder.wanted());
  }
  return std::move(builder.root());
}

}  // namespace gearshift
