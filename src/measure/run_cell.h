// One layer at one batch size, run as planned: checked, then timed.
#pragma once

#include "measure/activations.h"
#include "measure/judge.h"

namespace gearshift {

struct Cell {
  Comparison comparison;
  std::optional<Timing> timing;  // nullopt for an empty batch and for wrong numbers
  OwnedMatrix y;
};
// Runs the planned kernel of x.rows into poisoned memory with a poisoned workspace. `judge` judges this layer and
// expert. Error runtime: not enough memory.
Result<Cell> run_cell(const PreparedLayer& layer, const ConstMatrix& x, Judge& judge, int threads, int64_t expert);

}  // namespace gearshift
