#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/utf8.h"

namespace gearshift {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The digits at the start of `text` without leading zeros; moves `text` behind them.
std::string_view take_number(std::string_view& text) {
  size_t end = 0;
  while (end < text.size() && is_digit(text[end])) ++end;
  size_t begin = 0;
  while (begin < end && text[begin] == '0') ++begin;
  const std::string_view digits = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return digits;
}

size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t at = 0;
  // Eight bytes a step: sorting the names of a large checkpoint spends most of its time here.
  for (; at + 8 <= limit; at += 8) {
    uint64_t word_a = 0, word_b = 0;
    std::memcpy(&word_a, a.data() + at, 8);
    std::memcpy(&word_b, b.data() + at, 8);
    if (word_a != word_b) break;
  }
  while (at < limit && a[at] == b[at]) ++at;
  return at;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// What printing must not pass on: C0 and C1 controls, and the marks that reorder or break a line on a terminal.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

// The printable form of the first character of `text`, and how many bytes that character takes.
std::pair<std::string, size_t> printable_character(std::string_view text) {
  const Utf8Character character = decode_utf8(text);
  if (!character.valid) return {fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0])), 1};
  switch (character.code) {
    case '\n':
      return {"\\n", 1};
    case '\r':
      return {"\\r", 1};
    case '\t':
      return {"\\t", 1};
    default:
      break;
  }
  if (is_control(character.code)) {
    const auto code = static_cast<uint32_t>(character.code);
    return {code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code), character.bytes};
  }
  return {std::string(text.substr(0, character.bytes)), character.bytes};
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  // Names of one checkpoint share long beginnings: find the first difference, then step back to the start of the number
  // it may lie in.
  size_t same = common_prefix(a, b);
  while (same > 0 && is_digit(a[same - 1])) --same;
  std::string_view rest_a = a.substr(same), rest_b = b.substr(same);
  while (!rest_a.empty() && !rest_b.empty()) {
    if (is_digit(rest_a[0]) && is_digit(rest_b[0])) {
      const std::string_view number_a = take_number(rest_a), number_b = take_number(rest_b);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
      continue;
    }
    if (rest_a[0] != rest_b[0]) return static_cast<uint8_t>(rest_a[0]) < static_cast<uint8_t>(rest_b[0]);
    rest_a.remove_prefix(1);
    rest_b.remove_prefix(1);
  }
  if (rest_a.empty() != rest_b.empty()) return rest_a.empty();
  return a < b;  // they differ in leading zeros at most
}

std::vector<std::string> near_names(std::string_view word, std::span<const std::string_view> names, size_t count) {
  const std::string wanted = lower(word);
  // Far more than a slip of the finger; also bounds the work on absurd input.
  constexpr size_t kLongest = 256;
  if (wanted.empty() || wanted.size() > kLongest) return {};
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const std::string_view candidate : names) {
    if (candidate.size() > kLongest) continue;
    const std::string text = lower(candidate);
    const size_t distance = edit_distance(wanted, text);
    if (distance <= std::max<size_t>(2, wanted.size() / 3)) {
      near.emplace_back(distance, candidate);
    } else if (text.starts_with(wanted) || wanted.starts_with(text)) {
      near.emplace_back(distance, candidate);
    }
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> result;
  for (const auto& [distance, candidate] : near) {
    if (result.size() == count) break;
    if (std::find(result.begin(), result.end(), candidate) == result.end()) result.emplace_back(candidate);
  }
  return result;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

std::string join(std::span<const std::string> items, std::string_view separator) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i != 0) text += separator;
    text += items[i];
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.5 and more would be printed as 1000.
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  const int digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, digits, kUnits[unit]);
}

std::string printable(std::string_view text, size_t limit) {
  constexpr std::string_view kCut = " ... ";
  std::string head;
  size_t head_end = 0;  // bytes of `text` that `head` shows
  size_t kept = 0;      // of `head`, where cutting has to take place
  size_t kept_end = 0;  // bytes of `text` shown by those
  const size_t half = limit > kCut.size() ? (limit - kCut.size()) / 2 : 0;
  while (head_end < text.size() && head.size() <= limit) {
    const auto [shown, bytes] = printable_character(text.substr(head_end));
    head += shown;
    head_end += bytes;
    if (head.size() <= half) {
      kept = head.size();
      kept_end = head_end;
    }
  }
  if (head.size() <= limit) return head;
  head.resize(kept);
  // The tail, from a character boundary near the end.
  size_t start = std::max(kept_end, text.size() - std::min(text.size(), half));
  while (start < text.size() && (static_cast<uint8_t>(text[start]) & 0xC0) == 0x80) ++start;
  std::vector<std::string> characters;
  while (start < text.size()) {
    auto [shown, bytes] = printable_character(text.substr(start));
    characters.push_back(std::move(shown));
    start += bytes;
  }
  size_t first = characters.size();
  size_t size = 0;
  while (first > 0 && size + characters[first - 1].size() <= half) size += characters[--first].size();
  if (half > 0) head += kCut;
  for (; first < characters.size(); ++first) head += characters[first];
  return head;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace gearshift
