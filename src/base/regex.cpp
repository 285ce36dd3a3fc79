#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>

#include "base/text.h"

namespace gearshift {
namespace {

// Backtracking steps that all starting positions of one search may take together: milliseconds, and hundreds of times
// what patterns of real checkpoints need on a layer name.
constexpr size_t kStepBudget = 20'000'000;
constexpr size_t kStepsPerStart = 200'000;
constexpr size_t kPatternBytes = 64 * 1024;
constexpr uint32_t kHeapKiB = 16 * 1024;
constexpr uint32_t kDepth = 50'000;

bool run(void* code, std::string_view text, uint32_t options) {
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), &pcre2_match_context_free);
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(pcre2_match_data_create(1, nullptr),
                                                                                 &pcre2_match_data_free);
  if (!context || !data) return false;
  // PCRE2 counts the steps of each starting position anew, so the budget is divided among them.
  const size_t starts = (options & PCRE2_ANCHORED) != 0 ? 1 : text.size() + 1;
  const size_t steps = std::clamp<size_t>(kStepBudget / starts, 100, kStepsPerStart);
  pcre2_set_match_limit(context.get(), static_cast<uint32_t>(steps));
  pcre2_set_depth_limit(context.get(), kDepth);
  pcre2_set_heap_limit(context.get(), kHeapKiB);
  // A count of 0 says that the text matched and had more groups than `data` has room for.
  return pcre2_match(static_cast<pcre2_code*>(code), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, options,
                     data.get(), context.get()) >= 0;
}

}  // namespace

Result<Regex> Regex::compile(const std::string& pattern, const std::string& subject) {
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  if (context) pcre2_set_max_pattern_length(context.get(), kPatternBytes);
  int error = 0;
  PCRE2_SIZE offset = 0;
  // UTF and UCP: Python's classes (\w, \d) and '.' work on code points.
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP,
                                   &error, &offset, context.get());
  if (code == nullptr) {
    std::string reason(256, '\0');
    const int length = pcre2_get_error_message(error, reinterpret_cast<PCRE2_UCHAR*>(reason.data()), reason.size());
    reason.resize(length > 0 ? static_cast<size_t>(length) : 0);
    return ErrorInfo{
        ErrorCode::damaged_checkpoint,
        subject,
        fmt::format("pattern \"{}\" with an error at character {}: {}", printable(pattern), offset, reason),
        "a regular expression",
        "correct the pattern",
        {}};
  }
  Regex regex;
  regex.code_ = std::shared_ptr<void>(code, [](void* p) { pcre2_code_free(static_cast<pcre2_code*>(p)); });
  return regex;
}

bool Regex::match_start(std::string_view text) const { return code_ && run(code_.get(), text, PCRE2_ANCHORED); }

bool Regex::search(std::string_view text) const { return code_ && run(code_.get(), text, 0); }

}  // namespace gearshift
