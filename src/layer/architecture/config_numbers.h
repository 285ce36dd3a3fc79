// Sizes and switches of a config, untrusted: the first one that is missing or absurd is kept as the error, and what is
// asked after it is answered with the smallest harmless value, so that the code that uses them needs no checks.
#pragma once

#include <optional>

#include "base/json.h"
#include "gearshift/base.h"

namespace gearshift {

class ConfigNumbers {
 public:
  // Members of `first`, else of `second`; either may be null. `where` names the file and object in messages.
  ConfigNumbers(const Json* first, const Json* second, std::string where)
      : first_(first), second_(second), where_(std::move(where)) {}

  // nullptr when absent or null.
  const Json* find(std::string_view key) const;

  // A dimension, at least 1. With `otherwise`: that value where the config says nothing.
  int64_t size(std::string_view key) { return integer(key, std::nullopt, 1, kMaxSize); }
  int64_t size(std::string_view key, int64_t otherwise) { return integer(key, otherwise, 1, kMaxSize); }
  // How many there are of something: layers, heads, experts.
  int64_t count(std::string_view key) { return integer(key, std::nullopt, 1, kMaxCount); }
  int64_t count(std::string_view key, int64_t otherwise) { return integer(key, otherwise, 0, kMaxCount); }
  bool flag(std::string_view key, bool otherwise);
  // A list of `length` words, one a layer; empty when absent.
  std::vector<std::string> words(std::string_view key, int64_t length);
  // A list of layer numbers; empty when absent.
  std::vector<int64_t> numbers(std::string_view key);

  void fail(std::string_view key, std::string found, std::string wanted);
  bool failed() const { return error_.has_value(); }
  const ErrorInfo& error() const { return *error_; }

 private:
  // Sixteen times the largest sizes of published models; products of two with a count stay far below 2^63.
  static constexpr int64_t kMaxSize = int64_t{1} << 24;
  static constexpr int64_t kMaxCount = 65536;

  int64_t integer(std::string_view key, std::optional<int64_t> otherwise, int64_t least, int64_t most);

  const Json* first_;
  const Json* second_;
  std::string where_;
  std::optional<ErrorInfo> error_;
};

}  // namespace gearshift
