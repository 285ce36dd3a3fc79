// What stored values said against the configuration, row by row, on the way to the warnings of a plan.
#pragma once

#include <map>

#include "gearshift/prepare.h"

namespace gearshift {

class ValueNotes {
 public:
  void add(const PreparedLayer& layer);
  // Behind the plan's own warnings, rows in the plan's order.
  void append_to(Plan& plan) const;

 private:
  std::map<std::string, std::string> by_row_;  // row name -> its sentences
};

}  // namespace gearshift
