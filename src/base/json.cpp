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

// What nlohmann's parser calls: checks the limits and passes the events on.
class SaxAdapter {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  SaxAdapter(JsonEvents& events, JsonLimits limits) : events_(events), limits_(limits) {}

  bool null() {
    scalar_.kind = Json::Kind::null;
    return count() && events_.scalar(scalar_);
  }
  bool boolean(bool value) {
    scalar_.kind = Json::Kind::boolean;
    scalar_.boolean = value;
    return count() && events_.scalar(scalar_);
  }
  bool number_integer(number_integer_t value) {
    scalar_.kind = Json::Kind::integer;
    scalar_.integer = value;
    scalar_.number = static_cast<double>(value);
    return count() && events_.scalar(scalar_);
  }
  bool number_unsigned(number_unsigned_t value) {
    if (value <= static_cast<number_unsigned_t>(INT64_MAX)) return number_integer(static_cast<int64_t>(value));
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(number_float_t value, const string_t& /*text*/) {
    scalar_.kind = Json::Kind::number;
    scalar_.number = value;
    return count() && events_.scalar(scalar_);
  }
  bool string(string_t& value) {
    scalar_.kind = Json::Kind::string;
    scalar_.string.swap(value);
    return count() && events_.scalar(scalar_);
  }
  bool binary(binary_t& /*value*/) { return refuse("binary data", "JSON text"); }
  bool start_object(size_t /*elements*/) { return enter() && events_.begin_object(); }
  bool start_array(size_t /*elements*/) { return enter() && events_.begin_array(); }
  bool key(string_t& value) { return events_.key(value); }
  bool end_object() {
    --depth_;
    return events_.end_object();
  }
  bool end_array() {
    --depth_;
    return events_.end_array();
  }
  bool parse_error(size_t /*position*/, const std::string& token, const nlohmann::detail::exception& error) {
    // The exception's text has a prefix and a position of its own; the sentence after them is the reason.
    const std::string_view text = error.what();
    const size_t reason = text.find(": ");
    return refuse(
        reason == std::string_view::npos ? fmt::format("\"{}\"", printable(token)) : printable(text.substr(reason + 2)),
        "JSON");
  }

  // Set where this adapter, not the handler, ended the parse.
  const std::optional<JsonEvents::Refusal>& refusal() const { return refusal_; }

 private:
  bool refuse(std::string found, std::string wanted) {
    refusal_ = JsonEvents::Refusal{"", std::move(found), std::move(wanted)};
    return false;
  }
  bool count() {
    if (values_++ < limits_.values) return true;
    return refuse(fmt::format("more than {} values", limits_.values), "fewer");
  }
  bool enter() {
    if (depth_++ < limits_.depth) return count();
    return refuse(fmt::format("more than {} levels of nesting", limits_.depth), "fewer");
  }

  JsonEvents& events_;
  JsonLimits limits_;
  int depth_ = 0;
  size_t values_ = 0;
  Json scalar_;
  std::optional<JsonEvents::Refusal> refusal_;
};

}  // namespace

// Builds the tree bottom-up: only containers that are still open are on the stack.
class JsonBuilder : public JsonEvents {
 public:
  bool scalar(Json& value) override {
    Json copy;
    copy.kind = value.kind;
    copy.boolean = value.kind == Json::Kind::boolean && value.boolean;
    copy.integer = value.kind == Json::Kind::integer ? value.integer : 0;
    copy.number = value.kind == Json::Kind::integer || value.kind == Json::Kind::number ? value.number : 0;
    if (value.kind == Json::Kind::string) copy.string = std::move(value.string);
    attach(std::move(copy));
    return true;
  }
  bool begin_object() override { return begin(Json::Kind::object); }
  bool begin_array() override { return begin(Json::Kind::array); }
  bool key(std::string& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool end_object() override {
    Json& object = open_.back();
    const Json::Member* twice = object.members.size() <= kIndexFrom ? few_keys_twice(object) : index_keys(object);
    if (twice != nullptr) {
      return refuse({"", fmt::format("key \"{}\" twice in one object", printable(twice->first)), "every key once"});
    }
    return end_array();
  }
  bool end_array() override {
    Json done = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    attach(std::move(done));
    return true;
  }
  Json& root() { return root_; }

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
  bool begin(Json::Kind kind) {
    open_.emplace_back().kind = kind;
    keys_.emplace_back();
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

  Json root_;
  std::vector<Json> open_;
  std::vector<std::string> keys_;  // of the member being read, one for each open container
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

Result<void> parse_json_events(std::string_view text, const std::string& subject, JsonEvents& events,
                               JsonLimits limits) {
  const auto error = [&](size_t offset, const JsonEvents::Refusal& refusal) {
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     refusal.where.empty() ? subject : subject + ": " + refusal.where,
                     refusal.found + " at " + position(text, offset),
                     refusal.wanted,
                     "",
                     {}};
  };
  // nlohmann takes a NUL for the end of its input, and would accept whatever follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return error(nul + 1, {"", "a byte of value 0", "JSON"});
  }
  SaxAdapter adapter(events, limits);
  const char* reached = text.data();
  const TrackedText begin(text.data(), &reached);
  const TrackedText end(text.data() + text.size(), &reached);
  if (nlohmann::json::sax_parse(begin, end, &adapter)) return {};
  return error(static_cast<size_t>(reached - text.data()), adapter.refusal() ? *adapter.refusal() : events.refusal());
}

Result<Json> parse_json(std::string_view text, const std::string& subject, JsonLimits limits) {
  JsonBuilder builder;
  const Result<void> parsed = parse_json_events(text, subject, builder, limits);
  if (!parsed.ok()) return parsed.error();
  return std::move(builder.root());
}

}  // namespace gearshift
