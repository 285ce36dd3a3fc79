#include "report/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace gearshift {

namespace {

bool needs_no_escape(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

void append_escaped(std::string& out, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (byte) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
  }
}

}  // namespace

double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  const double scaled = std::round(value * scale);
  return std::isfinite(scaled) ? scaled / scale : value;
}

JsonWriter& JsonWriter::begin(char open, char close, Line line) {
  separate();
  text_ += open;
  if (!open_.empty() && open_.back().line == Line::single) line = Line::single;
  open_.push_back({close, line});
  return *this;
}

JsonWriter& JsonWriter::end() {
  const Container closed = open_.back();
  open_.pop_back();
  if (closed.line == Line::many && !closed.empty) new_line(depth());
  text_ += closed.close;
  if (open_.empty() && base_depth_ == 0) text_ += '\n';
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  quote(name);
  text_ += ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool flag) { return raw(flag ? "true" : "false"); }

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return raw({digits.data(), static_cast<size_t>(end - digits.data())});
}

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::write_integer(std::string_view digits) { return raw(digits); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (open_.empty()) return;
  Container& inside = open_.back();
  if (!inside.empty) text_ += inside.line == Line::single ? ", " : ",";
  inside.empty = false;
  if (inside.line == Line::many) new_line(depth());
}

void JsonWriter::new_line(size_t depth) {
  text_ += '\n';
  text_.append(2 * depth, ' ');
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    if (needs_no_escape(text[i])) {
      ++i;
      continue;
    }
    text_.append(text, begin, i - begin);
    const Utf8Character character = decode_utf8(text.substr(i));
    if (!character.valid) {
      text_ += "\xef\xbf\xbd";  // U+FFFD
    } else if (character.bytes == 1) {
      append_escaped(text_, static_cast<unsigned char>(text[i]));
    } else {
      text_.append(text, i, character.bytes);
    }
    i += character.bytes;
    begin = i;
  }
  text_.append(text, begin, text.size() - begin);
  text_ += '"';
}

}  // namespace gearshift
