// Members of the objects in a registry file, typed. The first thing that is wrong is kept; reading goes on without
// effect, so that a page of fields reads as a list.
#pragma once

#include <deque>

#include "base/json.h"
#include "gearshift/kernel.h"

namespace gearshift::data {

// Texts of a registry: the views in its kernels and rules point here.
class Texts {
 public:
  std::string_view keep(std::string_view text) { return kept_.emplace_back(text); }

 private:
  std::deque<std::string> kept_;
};

struct Reading {
  std::string subject;  // the file
  Texts& texts;
  std::optional<ErrorInfo> error = std::nullopt;  // the first

  // `place`: "kernels.MarlinLinearKernel.contract.groups".
  void wrong(const std::string& place, std::string found, std::string wanted, std::string hint = "");
  void unknown(const std::string& place, std::string_view word, std::string_view what,
               const std::vector<std::string_view>& valid);
};

// How a value is called in messages: "the number 3", "'abc'", "a list".
std::string described(const Json& json);

class Fields {
 public:
  Fields(const Json& object, std::string place, Reading& reading);
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  // The member, marked as read; nullptr where there is none.
  const Json* take(std::string_view key);
  std::string place_of(std::string_view key) const;
  // Whatever was not read is a mistake: names it and the near known ones.
  void finish();

  void text(std::string_view key, std::string_view& out);
  void flag(std::string_view key, bool& out);
  void flag(std::string_view key, std::optional<bool>& out);
  void integer(std::string_view key, int64_t& out, int64_t min, int64_t max);
  void bounds(std::string_view key, Bounds& out);
  void texts(std::string_view key, std::vector<std::string_view>& out);
  void texts_of_any_length(std::string_view key, std::vector<std::string_view>& out);
  void integers(std::string_view key, std::vector<int64_t>& out);
  // Words that mean one of `values`, by name().
  template <class T>
  void word(std::string_view key, T& out, std::span<const T> values) {
    if (const Json* json = take(key)) one(*json, place_of(key), out, values);
  }
  template <class T>
  void words(std::string_view key, std::vector<T>& out, std::span<const T> values) {
    each(key, [&](const Json& item, const std::string& place) {
      T value{};
      if (one(item, place, value, values)) out.push_back(value);
    });
  }
  // Calls `read(item, place)` for each item of a list.
  template <class Read>
  void each(std::string_view key, const Read& read) {
    const Json* json = take(key);
    if (json == nullptr) return;
    if (!json->is(Json::Kind::array)) return reading_.wrong(place_of(key), described(*json), "a list");
    for (size_t i = 0; i < json->items.size(); ++i) read(json->items[i], place_of(key) + "[" + std::to_string(i) + "]");
  }
  // Calls `read(name, member, place)` for each member of an object.
  template <class Read>
  void members(std::string_view key, const Read& read) {
    const Json* json = take(key);
    if (json == nullptr) return;
    if (!json->is(Json::Kind::object)) return reading_.wrong(place_of(key), described(*json), "an object");
    for (const auto& [name, member] : json->members) read(name, member, place_of(key) + "." + name);
  }

  Reading& reading() { return reading_; }

 private:
  template <class T>
  bool one(const Json& json, const std::string& place, T& out, std::span<const T> values) {
    for (const T& value : values) {
      if (json.is(Json::Kind::string) && json.string == word_of(value)) {
        out = value;
        return true;
      }
    }
    std::vector<std::string_view> valid;
    for (const T& value : values) valid.push_back(word_of(value));
    if (json.is(Json::Kind::string))
      reading_.unknown(place, json.string, "one of", valid);
    else
      reading_.wrong(place, described(json), "a word");
    return false;
  }
  template <class T>
  static std::string_view word_of(const T& value) {
    if constexpr (std::is_same_v<T, DType>)
      return value == DType::f16 ? "fp16" : value == DType::f32 ? "fp32" : value == DType::bf16 ? "bf16" : name(value);
    else
      return name(value);
  }

  const Json& object_;
  std::string place_;
  Reading& reading_;
  std::vector<std::string_view> known_;
};

// A text that may stand in a table and a message: printable, not empty, of bounded length.
bool is_name(std::string_view text);

}  // namespace gearshift::data
