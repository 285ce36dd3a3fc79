// Holds a kernel's output against the float64 reference of the arithmetic that ran.
#pragma once

#include <map>

#include "gearshift/measure.h"

namespace gearshift {

// The rows that are judged of M: all up to 32, then first ones, tile edges, last ones, and eight more per doubling.
// Ascending.
std::vector<int64_t> rows_to_judge(int64_t m, uint64_t seed);

// Judges outputs of one layer (or expert). Answers are kept by row, so that batch sizes which begin with the same
// activations, and kernels of the same arithmetic, share them.
class Judge {
 public:
  // `weights` must outlive the judge.
  Judge(const LayerWeights& weights, uint64_t seed, int threads) : weights_(weights), seed_(seed), threads_(threads) {}

  // REQUIRES: each x begins with the rows of every smaller x given before, or is begun with by them; y is [x.rows, N].
  Comparison compare(const Kernel& kernel, const ConstMatrix& x, const ConstMatrix& y);

 private:
  struct Answer {
    std::vector<double> y, magnitude;  // [N]
  };
  using Answers = std::map<int64_t, Answer>;

  const Answers& answers(ActivationUse use, const ConstMatrix& x, const std::vector<int64_t>& rows);

  const LayerWeights& weights_;
  uint64_t seed_;
  int threads_;
  std::map<ActivationUse, Answers> answers_;
  int64_t rows_of_answers_ = -1;
};

}  // namespace gearshift
