#include "layer/scheme/names.h"

#include "base/try.h"
#include "layer/modules.h"

namespace gearshift {
namespace {

bool has_wildcard(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

}  // namespace

std::string_view core_name(std::string_view name) {
  for (bool again = true; again;) {
    again = false;
    for (std::string_view prefix : {"model.", "language_model."}) {
      if (name.starts_with(prefix)) {
        name.remove_prefix(prefix.size());
        again = true;
      }
    }
  }
  return name;
}

std::vector<std::string> respellings(std::string_view name) {
  const std::string core(core_name(name));
  std::vector<std::string> all;
  for (std::string_view prefix : {"", "model.", "language_model.model.", "model.language_model.", "language_model."}) {
    std::string spelled = std::string(prefix) + core;
    if (spelled != name) all.push_back(std::move(spelled));
  }
  return all;
}

std::optional<std::string> text_name(std::string_view name) {
  constexpr std::string_view above = "language_model.", below = "model.language_model.";
  if (name.starts_with(above)) return std::string(name.substr(above.size()));
  if (name.starts_with(below)) return "model." + std::string(name.substr(below.size()));
  // A checkpoint of the language model alone, or the parts that stand beside it.
  const std::string_view core = core_name(name);
  for (std::string_view own : {"layers.", "lm_head", "embed_tokens", "norm"}) {
    if (core.starts_with(own)) return std::string(name);
  }
  return std::nullopt;
}

std::vector<std::string> shard_names(std::string_view name) {
  const std::string_view last = last_component(name);
  std::vector<std::string> shards;
  for (const FusedName& entry : fused_names()) {
    if (entry.fused != last) continue;
    for (std::string_view shard : entry.parts) {
      if (!shard.empty()) shards.push_back(sibling(name, shard));
    }
  }
  return shards;
}

std::string fused_name(std::string_view name) {
  const std::string_view last = last_component(name);
  for (const FusedName& entry : fused_names()) {
    for (std::string_view shard : entry.parts) {
      if (!shard.empty() && shard == last) return sibling(name, entry.fused);
    }
  }
  return "";
}

Result<void> TargetList::add(std::string_view entry, const std::string& subject) {
  const size_t index = size_++;
  if (!entry.starts_with("re:")) {
    exact_.try_emplace(std::string(entry), index);
    return {};
  }
  const std::string pattern(entry.substr(3));
  GEARSHIFT_TRY(Regex regex, Regex::compile(pattern, subject));
  expressions_.push_back({index, std::move(regex), !pattern.starts_with(".*")});
  return {};
}

std::optional<size_t> TargetList::match(std::string_view name) const {
  std::optional<size_t> best;
  if (const auto found = exact_.find(name); found != exact_.end()) best = found->second;
  for (const Expression& expression : expressions_) {
    if (best && *best < expression.index) break;
    if (expression.regex.match_start(name)) return expression.index;
  }
  return best;
}

std::optional<size_t> TargetList::match_respelled(std::string_view name) const {
  std::optional<size_t> best;
  for (const std::string& spelled : respellings(name)) {
    if (const auto found = exact_.find(spelled); found != exact_.end() && (!best || found->second < *best))
      best = found->second;
    for (const Expression& expression : expressions_) {
      if (best && *best < expression.index) break;
      if (expression.depends_on_prefix && expression.regex.match_start(spelled)) best = expression.index;
    }
  }
  return best;
}

void ExcludeList::add(std::string_view entry) {
  if (!has_wildcard(entry)) {
    exact_.emplace(std::string(entry), true);
    return;
  }
  wildcards_.emplace_back(entry);
  wildcards_.push_back(std::string(entry) + ".*");
}

bool ExcludeList::match(std::string_view name) const {
  for (std::string_view at = name; !at.empty(); at = parent(at)) {
    if (exact_.contains(at)) return true;
  }
  for (const std::string& pattern : wildcards_) {
    if (fnmatch(pattern, name)) return true;
  }
  return false;
}

bool ExcludeList::match_respelled(std::string_view name) const {
  for (const std::string& spelled : respellings(name)) {
    if (match(spelled)) return true;
  }
  return false;
}

}  // namespace gearshift
