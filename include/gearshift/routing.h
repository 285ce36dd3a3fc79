// What a model's config says of its expert layers: how tokens are spread over experts, and what stands between the two
// projections of one.
#pragma once

#include "gearshift/checkpoint.h"

namespace gearshift {

// a = f(clamped gate) * (clamped up + up_offset), or f(up) where there is no gate. f: silu v * sigmoid(alpha v); gelu
// exact or in its tanh form; relu2 max(v, 0)^2. Clamped, where `limit` is not 0: the gate from above, up from both
// sides.
struct ExpertFunction {
  enum class Kind : uint8_t { unknown, silu, gelu, gelu_tanh, relu2 };
  Kind kind = Kind::unknown;
  float alpha = 1, limit = 0, up_offset = 0;
  bool operator==(const ExpertFunction&) const = default;
};
std::string_view name(ExpertFunction::Kind kind);

struct ExpertRouting {
  int64_t routed = 0;  // experts of a layer in the whole model; 0: unknown
  int64_t top_k = 0;   // that each token goes to; 0: unknown
  ExpertFunction function;

  bool known() const { return top_k > 0 && routed >= top_k; }
};
// Reads config.json. Errors: damaged_checkpoint.
Result<ExpertRouting> read_routing(const Checkpoint& checkpoint);

// What an expert can expect of a batch under uniform routing: M * top_k / routed. REQUIRES: known().
inline double tokens_per_expert(const ExpertRouting& routing, int64_t batch) {
  return static_cast<double>(batch) * static_cast<double>(routing.top_k) / static_cast<double>(routing.routed);
}

// Tokens of a batch -> rows that one expert can expect of it under uniform routing, M * top_k / routed rounded up; M
// itself where routing is unknown.
int64_t expected_rows(const ExpertRouting& routing, int64_t batch);
// The most rows whose batch is at most `batch`: rows_within(batch_of_rows(r)) == r. 0: an expert with one row already
// belongs to a larger batch.
int64_t rows_within(const ExpertRouting& routing, int64_t batch);
// The inverse: the batch in which an expert expects `rows` rows, rounded down. Grows with `rows` without exception.
int64_t batch_of_rows(const ExpertRouting& routing, int64_t rows);

}  // namespace gearshift
