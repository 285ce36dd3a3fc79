// What a user must hear about a plan: one warning per code, family and requested backend, with every cause and its
// count.
#pragma once

#include "plan/select.h"

namespace gearshift {

// One row on its way into a plan.
struct SelectedRow {
  const LayerSpec* layer = nullptr;
  const Selection* selection = nullptr;  // shared by rows of one class under one request
};

// In the order in which their first rows come; schemes that are not loaded last.
std::vector<Warning> warnings_of(const std::vector<SelectedRow>& rows, const std::vector<UnknownModule>& unknown,
                                 const SelectionContext& context);

// One row whose stored values contradict its configuration, and the sentence about it.
struct RowNote {
  const LayerSpec* layer = nullptr;
  std::string sentence;
};
// What only values show: one warning `contradiction` per family, in the order of first rows.
std::vector<Warning> warnings_of_values(const std::vector<RowNote>& notes);

}  // namespace gearshift
