#include "layer/alike_experts.h"

#include <algorithm>
#include <array>

namespace gearshift {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Words in front of the number of something that is no expert.
constexpr std::array<std::string_view, 4> kNumbered = {"layers", "layer", "blocks", "block"};
// What patterns need to tell numbers apart by their digits or their length.
constexpr std::array<std::string_view, 6> kTellingParts = {"..", "?", "{", "[", "(", "\\"};

bool may_tell_experts_apart(std::string_view text) {
  if (const size_t expert = text.find("expert"); expert != std::string_view::npos) {
    std::string behind(text.substr(expert));
    // An escaped dot is a dot and nothing else.
    for (size_t at; (at = behind.find("\\.")) != std::string::npos;) behind.erase(at, 2);
    for (std::string_view part : kTellingParts)
      if (behind.find(part) != std::string::npos) return true;
  }
  std::string_view word;  // the last one before `i`
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end > i) {
      if (i > 0 && text[i - 1] == '\\') return true;  // \d and its like
      word = text.substr(i, end - i);
      // Digits that end a word (w1, e4m3) are part of a name.
      while (end < text.size() && (is_letter(text[end]) || is_digit(text[end]))) ++end;
      i = end;
    } else if (is_digit(text[i])) {
      if (std::find(kNumbered.begin(), kNumbered.end(), word) == kNumbered.end()) return true;
      while (i < text.size() && is_digit(text[i])) ++i;
    } else {
      ++i;
    }
  }
  return false;
}

}  // namespace

bool treats_experts_alike(const Json& dict) {
  if (dict.is(Json::Kind::string)) return !may_tell_experts_apart(dict.string);
  if (!std::all_of(dict.items.begin(), dict.items.end(), treats_experts_alike)) return false;
  return std::all_of(dict.members.begin(), dict.members.end(), [](const Json::Member& member) {
    // The versions of tools that wrote the file name nothing in it.
    return std::string_view(member.first).ends_with("version") ||
           (!may_tell_experts_apart(member.first) && treats_experts_alike(member.second));
  });
}

}  // namespace gearshift
