#include "pipeline/value_notes.h"

#include <iterator>

#include "base/text.h"
#include "plan/warnings.h"

namespace gearshift {

void ValueNotes::add(const PreparedLayer& layer) {
  if (!layer.notes.empty()) by_row_[layer.plan->layer.name] = join(layer.notes, "; ");
}

void ValueNotes::append_to(Plan& plan) const {
  std::vector<RowNote> notes;
  for (const LayerPlan& row : plan.layers) {
    const auto found = by_row_.find(row.layer.name);
    if (found != by_row_.end()) notes.push_back({&row.layer, found->second});
  }
  std::vector<Warning> warnings = warnings_of_values(notes);
  std::move(warnings.begin(), warnings.end(), std::back_inserter(plan.warnings));
}

}  // namespace gearshift
