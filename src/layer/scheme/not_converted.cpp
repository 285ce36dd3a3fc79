#include "layer/scheme/not_converted.h"

#include <algorithm>

#include "base/try.h"
#include "layer/modules.h"
#include "layer/scheme/config_keys.h"

namespace gearshift {

Result<NotConverted> NotConverted::read(const QuantConfig& quant, std::initializer_list<std::string_view> keys) {
  NotConverted list;
  for (std::string_view key : keys) {
    GEARSHIFT_TRY(const std::vector<std::string> entries, string_list(quant.dict->find(key), quant.key(key)));
    for (const std::string& entry : entries) GEARSHIFT_CHECK(list.add(entry, quant.key(key)));
  }
  return list;
}

Result<void> NotConverted::add(std::string_view entry, const std::string& subject) {
  // Some lists name the tensor.
  constexpr std::string_view tensor = ".weight";
  if (entry.ends_with(tensor)) entry.remove_suffix(tensor.size());
  if (entry.empty()) return {};
  ++count_;
  const bool marked = entry.starts_with("re:");
  if (marked) entry.remove_prefix(3);
  if (!marked && entry.find_first_of("*?[](){}|^$+\\") == std::string_view::npos) {
    if (exact_.emplace(std::string(entry), true).second) plain_.emplace_back(entry);
    return {};
  }
  if (marked) {
    GEARSHIFT_TRY(Regex regex, Regex::compile(std::string(entry), subject));
    expressions_.push_back(std::move(regex));
    return {};
  }
  wildcards_.add(entry);
  Result<Regex> loose = Regex::compile(std::string(entry), subject);
  if (!loose.ok()) return {};  // "*.gate" is a shell pattern and no expression: it has been taken as such
  GEARSHIFT_TRY(Regex whole, Regex::compile("(?:" + std::string(entry) + ")(?:\\.|$)", subject));
  loose_expressions_.push_back(*std::move(loose));
  expressions_.push_back(std::move(whole));
  return {};
}

bool NotConverted::match(std::string_view name) const {
  for (std::string_view at = name; !at.empty(); at = parent(at)) {
    if (exact_.contains(at)) return true;
  }
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    if (exact_.contains(name.substr(dot + 1))) return true;
  }
  return wildcards_.match(name) || std::any_of(expressions_.begin(), expressions_.end(),
                                               [&](const Regex& regex) { return regex.match_start(name); });
}

bool NotConverted::match_as_spelled_loosely(std::string_view name) const {
  return match(name) ||
         std::any_of(plain_.begin(), plain_.end(),
                     [&](const std::string& entry) { return name.starts_with(entry) || name.ends_with(entry); }) ||
         std::any_of(loose_expressions_.begin(), loose_expressions_.end(),
                     [&](const Regex& regex) { return regex.match_start(name); });
}

bool NotConverted::match_loosely(std::string_view name) const {
  if (match_as_spelled_loosely(name)) return true;
  const std::vector<std::string> spellings = respellings(name);
  if (std::any_of(spellings.begin(), spellings.end(),
                  [&](const std::string& spelled) { return match_as_spelled_loosely(spelled); }))
    return true;
  const std::string fused = fused_name(name);
  return !fused.empty() && match(fused);
}

}  // namespace gearshift
