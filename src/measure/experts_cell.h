// One expert block at one batch: run in poisoned memory, judged stage by stage, timed.
#pragma once

#include "gearshift/measure.h"
#include "gearshift/moe.h"
#include "measure/activations.h"

namespace gearshift {

struct ExpertsVerdict {
  Comparison comparison;  // of the whole block against its float64 reference
  int projection = -1;    // whose kernel was wrong: 0 or 1; -1: none
  int64_t rows = 0;       // that its expert had
};
// Judges what the last call of run_experts left in `scratch` and y, for a sample of tokens: each projection's output
// against float64 of what it read, with the bound of its kernel, the function and the sums with bounds of their own.
ExpertsVerdict judge_experts(const ExpertBlock& block, const RoutedTokens& routed, const ConstMatrix& x,
                             const ConstMatrix& y, const ExpertScratch& scratch, uint64_t seed, int threads);

struct ExpertsCell {
  OwnedMatrix y;
  ExpertsVerdict verdict;
  std::optional<Timing> timing;
};
// Errors: those of ExpertScratch::make and run_experts.
Result<ExpertsCell> run_experts_cell(const ExpertBlock& block, const RoutedTokens& routed, const ConstMatrix& x,
                                     uint64_t seed, int threads);

// Proves a block under the loads that go wrong first: one token, all tokens to one expert, most experts without any
// (Zipf), all alike. Made-up activations, poisoned memory; nothing is timed. The first verdict that is not ok, else the
// last. Errors: as above.
Result<ExpertsVerdict> prove_experts(const ExpertBlock& block, int64_t top_k, DType dtype, uint64_t seed, int threads);

// A router's choice made up: top_k different experts for each token, weights that add up to 1. `skew` 0: all experts
// alike; else the expert of rank r is drawn with probability in proportion to r^-skew (Zipf), ranks shuffled.
struct MadeUpRouting {
  int64_t tokens = 0, top_k = 0;
  std::vector<int32_t> experts;
  std::vector<float> weights;
  RoutedTokens view() const { return {tokens, top_k, experts.data(), weights.data()}; }
};
MadeUpRouting make_routing(int64_t tokens, int64_t top_k, int64_t experts, double skew, uint64_t seed);

}  // namespace gearshift
