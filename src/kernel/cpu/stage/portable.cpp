// Plain loops: the decoded panel is int8 or fp32, [column][row].
#include "kernel/cpu/stage/pieces.h"

namespace gearshift {

namespace {

uint32_t code_at(const DecodeArgs& args, int64_t column, int64_t row) {
  const uint8_t* panel = args.codes + row / 16 * args.panel_stride;
  const uint8_t byte = panel[column / 32 * 256 + column % 32 / 8 * 64 + 4 * (row % 16) + column % 4];
  return column % 8 < 4 ? byte & 15u : byte >> 4;
}

void decode_dot(const DecodeArgs& args) {
  for (int64_t k = 0; k < args.columns; ++k) {
    for (int64_t r = 0; r < 16; ++r) args.panel[k * 16 + r] = args.table->biased[code_at(args, k, r)];
  }
}

void multiply_dot(const ProductArgs& args) {
  const auto* x = static_cast<const int8_t*>(args.x);
  for (int64_t m = 0; m < args.w; ++m) {
    for (int64_t span = 0; span * args.span < args.columns; ++span) {
      const int64_t first = span * args.span;
      const int64_t end = first + args.span < args.columns ? first + args.span : args.columns;
      for (int64_t r = 0; r < 16; ++r) {
        int32_t dot = args.correction[span * args.w + m];
        for (int64_t k = first; k < end; ++k) {
          dot += args.weights[k * 16 + r] * x[(k / 4 * args.w + m) * 4 + k % 4];
        }
        float value = static_cast<float>(dot);
        if (args.x_scales != nullptr) value *= args.x_scales[span * args.w + m];
        args.sums[m * 16 + r] += value * args.scales[span * 16 + r];
      }
    }
  }
}

void decode_float(const DecodeArgs& args) {
  auto* panel = reinterpret_cast<float*>(args.panel);
  for (int64_t k = 0; k < args.columns; ++k) {
    for (int64_t r = 0; r < 16; ++r) {
      const int64_t at = k / args.span * 16 + r;
      const float zero = args.zeros == nullptr ? 0 : args.zeros[at];
      panel[k * 16 + r] = (args.table->value[code_at(args, k, r)] - zero) * args.scales[at];
    }
  }
}

void multiply_float(const ProductArgs& args) {
  const auto* x = static_cast<const float*>(args.x);
  const auto* weights = reinterpret_cast<const float*>(args.weights);
  for (int64_t m = 0; m < args.w; ++m) {
    for (int64_t k = 0; k < args.columns; ++k) {
      for (int64_t r = 0; r < 16; ++r) args.sums[m * 16 + r] += weights[k * 16 + r] * x[k * args.w + m];
    }
  }
}

}  // namespace

Pieces dot_panel_portable() { return {1, 4, 1, XOrder::dwords, Correction::span, decode_dot, multiply_dot}; }
Pieces float_panel_portable() { return {1, 4, 4, XOrder::floats, Correction::span, decode_float, multiply_float}; }

}  // namespace gearshift
