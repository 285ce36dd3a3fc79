#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"

namespace gearshift {
namespace {

// One unit of a wildcard pattern: any run, any one character, a set, or a literal (a set of one).
struct WildcardToken {
  enum class Kind : uint8_t { run, any, set } kind = Kind::set;
  bool negated = false;
  std::vector<std::pair<char32_t, char32_t>> ranges;

  bool accepts(char32_t c) const {
    if (kind == Kind::any) return true;
    const bool inside = std::any_of(ranges.begin(), ranges.end(),
                                    [c](const auto& range) { return range.first <= c && c <= range.second; });
    return inside != negated;
  }
};

// Bytes that are not UTF-8 get numbers of their own, so that they never equal a character.
std::u32string characters(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    result += character.valid ? character.code : static_cast<char32_t>(0x110000 + character.code);
    text.remove_prefix(character.bytes);
  }
  return result;
}

// The set whose '[' stands before `begin`, as Python's fnmatch.translate reads it: '!' negates, a ']' in first place is
// literal, a '-' between two characters makes a range, and a range that runs backwards is empty. Returns the position
// after the closing ']', or 0 when there is none: the '[' is then literal.
size_t read_set(const std::u32string& pattern, size_t begin, WildcardToken& token) {
  size_t at = begin;
  const bool negated = at < pattern.size() && pattern[at] == U'!';
  if (negated) ++at;
  const size_t end = pattern.find(U']', at + 1);
  if (at >= pattern.size() || end == std::u32string::npos) return 0;
  token.negated = negated;
  while (at < end) {
    if (at + 2 < end && pattern[at + 1] == U'-') {
      if (pattern[at] <= pattern[at + 2]) token.ranges.emplace_back(pattern[at], pattern[at + 2]);
      at += 3;
    } else {
      token.ranges.emplace_back(pattern[at], pattern[at]);
      ++at;
    }
  }
  return end + 1;
}

std::vector<WildcardToken> read_pattern(std::string_view text) {
  const std::u32string pattern = characters(text);
  std::vector<WildcardToken> tokens;
  for (size_t i = 0; i < pattern.size();) {
    WildcardToken token;
    size_t next = i + 1;
    if (pattern[i] == U'*') {
      token.kind = WildcardToken::Kind::run;
    } else if (pattern[i] == U'?') {
      token.kind = WildcardToken::Kind::any;
    } else {
      const size_t after_set = pattern[i] == U'[' ? read_set(pattern, i + 1, token) : 0;
      if (after_set != 0) {
        next = after_set;
      } else {
        token.ranges.emplace_back(pattern[i], pattern[i]);
      }
    }
    tokens.push_back(std::move(token));
    i = next;
  }
  return tokens;
}

// Matches units of a pattern against characters. Only the last run is ever retried, because an earlier one cannot do
// better by taking more: time is at most pattern x text.
template <class IsRun, class Accepts>
bool match_units(size_t units, size_t length, IsRun is_run, Accepts accepts) {
  size_t unit = 0, at = 0;
  size_t after_run = SIZE_MAX, run_end = 0;
  while (at < length) {
    if (unit < units && is_run(unit)) {
      after_run = ++unit;
      run_end = at;
    } else if (unit < units && accepts(unit, at)) {
      ++unit;
      ++at;
    } else if (after_run != SIZE_MAX) {
      unit = after_run;
      at = ++run_end;
    } else {
      return false;
    }
  }
  while (unit < units && is_run(unit)) ++unit;
  return unit == units;
}

}  // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
  return match_units(
      pattern.size(), text.size(), [&](size_t unit) { return pattern[unit] == '*'; },
      [&](size_t unit, size_t at) { return pattern[unit] == text[at]; });
}

size_t glob_literals(std::string_view pattern) {
  return pattern.size() - static_cast<size_t>(std::count(pattern.begin(), pattern.end(), '*'));
}

bool fnmatch(std::string_view pattern, std::string_view text) {
  const std::vector<WildcardToken> tokens = read_pattern(pattern);
  const std::u32string name = characters(text);
  return match_units(
      tokens.size(), name.size(), [&](size_t unit) { return tokens[unit].kind == WildcardToken::Kind::run; },
      [&](size_t unit, size_t at) { return tokens[unit].accepts(name[at]); });
}

}  // namespace gearshift
