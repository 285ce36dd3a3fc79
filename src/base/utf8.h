// UTF-8, one character at a time.
#pragma once

#include <cstdint>
#include <string_view>

namespace gearshift {

struct Utf8Character {
  char32_t code = 0;  // the code point; the byte itself where the bytes are not UTF-8
  size_t bytes = 1;   // 1 where the bytes are not UTF-8
  bool valid = false;
};

// The first character of `text`. Overlong forms, surrogates and code points above U+10FFFF are not valid
// (Unicode 15, table 3-7). REQUIRES: text is not empty
inline Utf8Character decode_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {lead, 1, false};
  char32_t code = lead & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {lead, 1, false};
    code = (code << 6) | (byte(i) & 0x3F);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {lead, 1, false};
  return {code, bytes, true};
}

}  // namespace gearshift
