// The exclusion list of fp8 and its relatives (`modules_to_not_convert`, `ignored_layers`): an entry excludes what it
// matches as a regular expression from the start of a name, its children, and names that end in it (formats.md 4.3).
//
// Read to the letter, "model.layers.1" excludes layer 17 and "gate" a module called aggregate, and other loaders take
// entries as whole names. So a match that ends inside a component is told apart: it excuses a float weight, but cannot
// contradict quantized tensors.
#pragma once

#include "layer/quant_config.h"
#include "layer/scheme/names.h"

namespace gearshift {

class NotConverted {
 public:
  // The lists of the dictionary under these keys. Errors damaged_checkpoint: no list of strings, or an expression does
  // not compile.
  static Result<NotConverted> read(const QuantConfig& quant, std::initializer_list<std::string_view> keys);
  bool empty() const { return count_ == 0; }
  bool match(std::string_view name) const;
  // A match inside a component, with another prefix, or through the fused name of a part.
  bool match_loosely(std::string_view name) const;

 private:
  Result<void> add(std::string_view entry, const std::string& subject);
  bool match_as_spelled_loosely(std::string_view name) const;

  size_t count_ = 0;
  NameMap<bool> exact_;
  std::vector<std::string> plain_;  // the same entries, in order
  std::vector<Regex> expressions_, loose_expressions_;
  ExcludeList wildcards_;
};

}  // namespace gearshift
