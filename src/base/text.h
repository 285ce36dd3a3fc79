// Text: order, patterns and near names.
#pragma once

#include <memory>

#include "gearshift/base.h"

namespace gearshift {

// Digits compare as numbers of any length: "layers.2" before "layers.10". A strict weak order; equal only for equal
// texts.
bool natural_less(std::string_view a, std::string_view b);
// '*' matches any characters, dots included; everything else is literal. Linear time.
bool glob_match(std::string_view pattern, std::string_view text);
// Characters of the pattern that are not '*': what "most specific wins" counts.
size_t glob_literals(std::string_view pattern);
// The shell's wildcards as Python's fnmatch has them: * ? [abc] [!a-z]; '*' crosses dots. Linear time in practice,
// bounded always.
bool fnmatch(std::string_view pattern, std::string_view text);
// At most `count` of `names` that are near `word` (edit distance, prefix), nearest first.
std::vector<std::string> near_names(std::string_view word, std::span<const std::string_view> names, size_t count = 3);
std::string lower(std::string_view text);
std::string join(std::span<const std::string> items, std::string_view separator);
std::vector<std::string> split(std::string_view text, char separator);
// "96.2 MB": decimal units, three digits.
std::string format_bytes(uint64_t bytes);
// Printable on one line: control characters and invalid UTF-8 escaped, cut in the middle when longer than `limit`.
std::string printable(std::string_view text, size_t limit = 200);
// Strictly parsed numbers: the whole text or nothing.
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// A Python-style regular expression with re.match (anchored at the start) and re.search; PCRE2 with match and depth
// limits, so that a hostile pattern costs bounded time. A pattern that runs into the limit does not match.
class Regex {
 public:
  // Error damaged_checkpoint: the pattern does not compile (says where).
  static Result<Regex> compile(const std::string& pattern, const std::string& subject);
  bool match_start(std::string_view text) const;  // re.match
  bool search(std::string_view text) const;       // re.search

 private:
  std::shared_ptr<void> code_;
};

}  // namespace gearshift
