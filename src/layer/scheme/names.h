// Names of modules as config lists spell them: other prefixes than the tensors', fused names, exclusion patterns.
#pragma once

#include <unordered_map>

#include "base/text.h"

namespace gearshift {

// The name without leading `model.` and `language_model.`: what prefix variants of one module share (formats.md 12.4).
std::string_view core_name(std::string_view name);
// Other spellings of a module's name that a config may use; for a second attempt only.
std::vector<std::string> respellings(std::string_view name);
// The name relative to the language model, as a dictionary inside text_config uses it; nullopt for modules outside it.
std::optional<std::string> text_name(std::string_view name);
// "a.qkv_proj" -> {"a.q_proj", "a.k_proj", "a.v_proj"}; empty when the name is no fused one.
std::vector<std::string> shard_names(std::string_view name);
// "a.k_proj" -> "a.qkv_proj"; "" when the name is no shard.
std::string fused_name(std::string_view name);

// Hashes names without making strings of them.
struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
};
template <class T>
using NameMap = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;

// An ordered list of patterns in compressed-tensors' style: `re:` and a Python regular expression matched at the start,
// or an exact name (formats.md 2.5).
class TargetList {
 public:
  // Error damaged_checkpoint: the expression does not compile. `subject` names the config key.
  Result<void> add(std::string_view entry, const std::string& subject);
  // Index of the first entry that matches the name as it is, or (second attempt) spelled otherwise.
  std::optional<size_t> match(std::string_view name) const;
  std::optional<size_t> match_respelled(std::string_view name) const;

 private:
  struct Expression {
    size_t index;
    Regex regex;
    bool depends_on_prefix;  // does not begin with ".*": another spelling of the prefix can make a difference
  };
  size_t size_ = 0;
  NameMap<size_t> exact_;
  std::vector<Expression> expressions_;
};

// A set of patterns in ModelOpt's style: shell wildcards that cross dots, exact names, children of either
// (formats.md 3.4).
class ExcludeList {
 public:
  void add(std::string_view entry);
  bool match(std::string_view name) const;
  bool match_respelled(std::string_view name) const;

 private:
  NameMap<bool> exact_;
  std::vector<std::string> wildcards_;
};

}  // namespace gearshift
