#include "layer/architecture/config_numbers.h"

namespace gearshift {

const Json* ConfigNumbers::find(std::string_view key) const {
  for (const Json* object : {first_, second_}) {
    const Json* value = object != nullptr ? object->find(key) : nullptr;
    if (value != nullptr && !value->is_null()) return value;
  }
  return nullptr;
}

void ConfigNumbers::fail(std::string_view key, std::string found, std::string wanted) {
  if (error_) return;
  error_ = ErrorInfo{ErrorCode::damaged_checkpoint,
                     where_ + std::string(key),
                     std::move(found),
                     std::move(wanted),
                     "without tensors the shapes of the layers follow from this key",
                     {}};
}

int64_t ConfigNumbers::integer(std::string_view key, std::optional<int64_t> otherwise, int64_t least, int64_t most) {
  const Json* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  const bool valid =
      value != nullptr && value->is(Json::Kind::integer) && value->integer >= least && value->integer <= most;
  if (valid) return value->integer;
  std::string found = "no such key";
  if (value != nullptr)
    found = value->is(Json::Kind::integer) ? std::to_string(value->integer) : "a " + std::string(name(value->kind));
  fail(key, std::move(found), "an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

bool ConfigNumbers::flag(std::string_view key, bool otherwise) {
  const Json* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->is(Json::Kind::boolean)) return value->boolean;
  fail(key, "a " + std::string(name(value->kind)), "true or false");
  return otherwise;
}

std::vector<std::string> ConfigNumbers::words(std::string_view key, int64_t length) {
  std::vector<std::string> list;
  const Json* value = find(key);
  if (value == nullptr) return list;
  if (static_cast<int64_t>(value->items.size()) != length) {
    fail(key, std::to_string(value->items.size()) + " entries", std::to_string(length) + " words, one a layer");
    return list;
  }
  list.reserve(value->items.size());
  for (const Json& item : value->items) list.push_back(item.string);
  return list;
}

std::vector<int64_t> ConfigNumbers::numbers(std::string_view key) {
  std::vector<int64_t> list;
  const Json* value = find(key);
  if (value == nullptr) return list;
  bool valid = value->is(Json::Kind::array);
  for (const Json& item : value->items) {
    valid = valid && item.is(Json::Kind::integer);
    list.push_back(item.integer);
  }
  if (!valid) fail(key, "something else", "a list of layer numbers");
  return list;
}

}  // namespace gearshift
