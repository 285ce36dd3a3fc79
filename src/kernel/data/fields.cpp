#include "kernel/data/fields.h"

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace gearshift::data {

void Reading::wrong(const std::string& place, std::string found, std::string wanted, std::string hint) {
  if (error) return;
  error = ErrorInfo{ErrorCode::usage, subject + (place.empty() ? "" : ": " + printable(place)),
                    std::move(found), std::move(wanted),
                    std::move(hint),  {}};
}

void Reading::unknown(const std::string& place, std::string_view word, std::string_view what,
                      const std::vector<std::string_view>& valid) {
  const std::vector<std::string> near = near_names(word, valid);
  std::string listed;
  for (std::string_view name : valid) listed += (listed.empty() ? "" : ", ") + std::string(name);
  wrong(place, "'" + printable(word) + "'", std::string(what) + ": " + listed,
        near.empty() ? "" : "did you mean " + join(near, ", ") + "?");
}

std::string described(const Json& json) {
  if (json.is(Json::Kind::string)) return "'" + printable(json.string) + "'";
  if (json.is(Json::Kind::integer)) return "the number " + std::to_string(json.integer);
  if (json.is(Json::Kind::boolean)) return json.boolean ? "true" : "false";
  return "a value of type " + std::string(name(json.kind));
}

bool is_name(std::string_view text) { return !text.empty() && text.size() <= 200 && printable(text) == text; }

Fields::Fields(const Json& object, std::string place, Reading& reading)
    : object_(object), place_(std::move(place)), reading_(reading) {
  if (!object.is(Json::Kind::object)) reading_.wrong(place_, described(object), "an object");
}

const Json* Fields::take(std::string_view key) {
  known_.push_back(key);
  return object_.find(key);
}

std::string Fields::place_of(std::string_view key) const {
  return place_.empty() ? std::string(key) : place_ + "." + std::string(key);
}

void Fields::finish() {
  for (const auto& [key, member] : object_.members) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end())
      reading_.unknown(place_, key, "one of the fields", known_);
  }
}

void Fields::text(std::string_view key, std::string_view& out) {
  const Json* json = take(key);
  if (json == nullptr) return;
  if (!json->is(Json::Kind::string)) return reading_.wrong(place_of(key), described(*json), "a text");
  if (printable(json->string, json->string.size() + 1) != json->string)
    return reading_.wrong(place_of(key), described(*json), "a text of one line");
  out = reading_.texts.keep(json->string);
}

void Fields::flag(std::string_view key, bool& out) {
  const Json* json = take(key);
  if (json == nullptr) return;
  if (!json->is(Json::Kind::boolean)) return reading_.wrong(place_of(key), described(*json), "true or false");
  out = json->boolean;
}

void Fields::flag(std::string_view key, std::optional<bool>& out) {
  if (object_.find(key) == nullptr) {
    known_.push_back(key);
    return;
  }
  bool value = false;
  flag(key, value);
  out = value;
}

void Fields::integer(std::string_view key, int64_t& out, int64_t min, int64_t max) {
  const Json* json = take(key);
  if (json == nullptr) return;
  if (!json->is(Json::Kind::integer) || json->integer < min || json->integer > max)
    return reading_.wrong(place_of(key), described(*json),
                          "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  out = json->integer;
}

void Fields::bounds(std::string_view key, Bounds& out) {
  const Json* json = take(key);
  if (json == nullptr) return;
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  Fields fields(*json, place_of(key), reading_);
  fields.integer("min", out.min, 0, most);
  fields.integer("max", out.max, 0, most);
  fields.integer("multiple", out.multiple, 1, most);
  fields.finish();
  if (out.max != 0 && out.max < out.min)
    reading_.wrong(place_of(key), "max " + std::to_string(out.max) + " below min " + std::to_string(out.min),
                   "a range that holds something");
}

void Fields::texts(std::string_view key, std::vector<std::string_view>& out) {
  each(key, [&](const Json& item, const std::string& place) {
    if (!item.is(Json::Kind::string) || !is_name(item.string)) return reading_.wrong(place, described(item), "a name");
    out.push_back(reading_.texts.keep(item.string));
  });
}

void Fields::texts_of_any_length(std::string_view key, std::vector<std::string_view>& out) {
  each(key, [&](const Json& item, const std::string& place) {
    if (!item.is(Json::Kind::string)) return reading_.wrong(place, described(item), "a text");
    out.push_back(reading_.texts.keep(item.string));
  });
}

void Fields::integers(std::string_view key, std::vector<int64_t>& out) {
  each(key, [&](const Json& item, const std::string& place) {
    if (!item.is(Json::Kind::integer) || item.integer < 1)
      return reading_.wrong(place, described(item), "a whole number from 1 up");
    out.push_back(item.integer);
  });
}

}  // namespace gearshift::data
