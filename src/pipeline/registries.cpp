#include "pipeline/registries.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/text.h"
#include "base/try.h"

namespace gearshift {
namespace {

constexpr uintmax_t kLargestRegistry = 16'000'000;  // bytes; that of vLLM takes less than a hundred thousand

ErrorInfo no_registry(const std::string& word, std::string found) {
  static constexpr std::string_view names[] = {"gearshift", "vllm"};
  const std::vector<std::string> near = near_names(word, names);
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = "--registry " + printable(word);
  error.found = std::move(found);
  error.wanted = "gearshift, vllm or a registry file of at most " + format_bytes(kLargestRegistry);
  if (!near.empty()) error.hint = "did you mean " + join(near, ", ") + "?";
  return error;
}

Result<std::string> read_text(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return no_registry(path, "no such file");
  if (!std::filesystem::is_regular_file(path, failed)) return no_registry(path, "no regular file");
  const uintmax_t bytes = std::filesystem::file_size(path, failed);
  if (failed) return no_registry(path, "a file of unknown size");
  if (bytes > kLargestRegistry) return no_registry(path, "a file of " + format_bytes(bytes));
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return no_registry(path, "a file that cannot be read");
  return text;
}

}  // namespace

Result<Registry> open_registry(const std::string& word) {
  if (word == "gearshift") return builtin_registry();
  if (word == "vllm") return vllm_registry();
  GEARSHIFT_TRY(const std::string text, read_text(word));
  return read_registry(text, word);
}

}  // namespace gearshift
