#include <algorithm>
#include <cmath>

#include "gearshift/moe.h"
#include "moe/elements.h"

namespace gearshift {

namespace {

float value_of(const ExpertFunction& function, float v) {
  switch (function.kind) {
    case ExpertFunction::Kind::silu:
      return v / (1 + std::exp(-function.alpha * v));
    // Both forms without a difference of nearly equal numbers, so that small results keep their digits.
    case ExpertFunction::Kind::gelu:
      return 0.5f * v * std::erfc(v * -0.70710678118654752f);
    case ExpertFunction::Kind::gelu_tanh:
      return v / (1 + std::exp(-1.59576912160573071f * (v + 0.044715f * v * v * v)));
    case ExpertFunction::Kind::relu2: {
      const float positive = std::max(v, 0.0f);
      return positive * positive;
    }
    case ExpertFunction::Kind::unknown:
      break;
  }
  return v;
}

template <class Element>
void apply(const ExpertFunction& f, ExpertRowOrder order, const void* projected, int64_t hidden, void* out) {
  const int64_t step = order.interleaved ? 2 : 1, up_at = order.interleaved ? 1 : hidden;
  for (int64_t i = 0; i < hidden; ++i) {
    float gate = Element::load(projected, i * (order.gated ? step : 1));
    if (f.limit > 0) gate = std::min(gate, f.limit);
    float value = value_of(f, gate);
    if (order.gated) {
      float up = Element::load(projected, i * step + up_at);
      if (f.limit > 0) up = std::clamp(up, -f.limit, f.limit);
      value *= up + f.up_offset;
    }
    Element::store(out, i, value);
  }
}

}  // namespace

void apply_function(const ExpertFunction& function, ExpertRowOrder order, DType dtype, const void* projected,
                    int64_t hidden, void* out) {
  with_elements(dtype, [&](auto element) { apply<decltype(element)>(function, order, projected, hidden, out); });
}

}  // namespace gearshift
