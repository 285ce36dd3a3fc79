#include "base/text.h"
#include "gearshift/base.h"

namespace gearshift {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::runtime:
      return 1;
    case ErrorCode::usage:
      return 2;
    case ErrorCode::no_kernel:
    case ErrorCode::fallback_refused:
      return 3;
    case ErrorCode::damaged_checkpoint:
    case ErrorCode::unsupported_scheme:
      return 4;
    case ErrorCode::self_check:
      return 5;
  }
  return 1;
}

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::runtime:
      return "runtime";
    case ErrorCode::usage:
      return "usage";
    case ErrorCode::no_kernel:
      return "no_kernel";
    case ErrorCode::fallback_refused:
      return "fallback_refused";
    case ErrorCode::damaged_checkpoint:
      return "damaged_checkpoint";
    case ErrorCode::unsupported_scheme:
      return "unsupported_scheme";
    case ErrorCode::self_check:
      return "self_check";
  }
  return "runtime";
}

std::string ErrorInfo::message() const {
  std::string facts;
  if (!found.empty()) facts = "found " + found;
  if (!wanted.empty()) facts += (facts.empty() ? "wanted " : ", wanted ") + wanted;
  std::string text = subject;
  if (!facts.empty()) text += (text.empty() ? "" : ": ") + facts;
  if (!hint.empty()) text += text.empty() ? hint : " (" + hint + ")";
  // Subjects and findings quote untrusted files; one error stays one line whatever they hold.
  return printable(text, std::string::npos);
}

}  // namespace gearshift
