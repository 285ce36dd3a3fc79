// A policy whose names exist and whose values make sense.
#pragma once

#include "gearshift/plan.h"

namespace gearshift {

// Normalised: batch sizes ascending and unique, "" as "auto". Error usage: an unknown backend, kernel or --disable name
// (lists the near and the valid ones), a batch size below 1, a dtype that is not 16 or 32 bit float.
Result<Policy> checked_policy(Policy policy, const Registry& registry);

// Errors usage. "wanted WHAT: every valid word (did you mean NEAR?)".
ErrorInfo unknown_name(std::string option, std::string_view what, const std::string& word,
                       const std::vector<std::string_view>& valid);
ErrorInfo wrong_value(std::string option, std::string found, std::string wanted);

}  // namespace gearshift
