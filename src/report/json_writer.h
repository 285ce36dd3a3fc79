// Writes JSON text from front to back: no tree, equal input gives equal bytes.
//
// A container is spread over lines, one member each, or kept on one line (`Line::single`) for small rows; what is
// inside a single-line container is on that line too. Bytes that are not UTF-8 become U+FFFD; numbers that JSON lacks
// become null.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "gearshift/base.h"

namespace gearshift {

class JsonWriter {
 public:
  enum class Line : uint8_t { many, single };

  // `depth`: the nesting that the text will be placed in by raw(); decides the indentation.
  explicit JsonWriter(size_t depth = 0) : base_depth_(depth) {}

  JsonWriter& begin_object(Line line = Line::many) { return begin('{', '}', line); }
  JsonWriter& begin_array(Line line = Line::many) { return begin('[', ']', line); }
  JsonWriter& end();
  // REQUIRES: inside an object, and a value or a container follows.
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(double number);
  template <std::integral T>
  JsonWriter& value(T number) {
    return write_integer(std::to_string(number));
  }
  JsonWriter& null();
  // Text that another writer made for this depth.
  JsonWriter& raw(std::string_view json);
  // null for an empty text.
  JsonWriter& value_or_null(std::string_view text) { return text.empty() ? null() : value(text); }

  template <class T>
  JsonWriter& member(std::string_view name, const T& content) {
    key(name);
    return value(content);
  }
  JsonWriter& member_or_null(std::string_view name, std::string_view text) {
    key(name);
    return value_or_null(text);
  }
  // An array of texts or numbers on one line.
  template <class Range>
  JsonWriter& list(std::string_view name, const Range& items) {
    key(name);
    begin_array(Line::single);
    for (const auto& item : items) value(item);
    return end();
  }

  size_t depth() const { return base_depth_ + open_.size(); }
  // REQUIRES: every container is closed.
  std::string take() { return std::move(text_); }

 private:
  struct Container {
    char close;
    Line line;
    bool empty = true;
  };
  JsonWriter& begin(char open, char close, Line line);
  JsonWriter& write_integer(std::string_view digits);
  void separate();
  void new_line(size_t depth);
  void quote(std::string_view text);

  std::string text_;
  std::vector<Container> open_;
  size_t base_depth_;
  bool after_key_ = false;
};

// `value` rounded to `decimals` places: more digits of a measured time would be noise.
double rounded(double value, int decimals);

}  // namespace gearshift
