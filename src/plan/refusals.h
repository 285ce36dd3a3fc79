// Plans that cannot be: a layer that nothing serves, a fallback that --strict refuses.
#pragma once

#include "plan/warnings.h"

namespace gearshift {

// The error that forbids the plan: a locked plan (`lock` names it) that can't be kept; no_kernel or self_check when
// batch sizes are unserved, else fallback_refused when the policy is strict and some row fell back. All groups of rows
// concerned are listed in its details. nullopt: none.
std::optional<ErrorInfo> refusal_of(const std::vector<SelectedRow>& rows, const SelectionContext& context,
                                    const std::string& lock);

}  // namespace gearshift
