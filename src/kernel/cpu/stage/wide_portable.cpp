// Which version serves which instruction set, and the one without any.
#include <cstring>

#include "format/bf16.h"
#include "format/e4m3.h"
#include "kernel/cpu/stage/wide.h"

namespace gearshift {

namespace {

constexpr int64_t kPortableRows = 4;

template <WideCode code>
float code_value(const uint8_t* codes, int64_t row, int64_t column) {
  if constexpr (code == WideCode::e4m3) return format::e4m3_table[codes[column * kWideRows + row]];
  uint16_t bits;
  std::memcpy(&bits, codes + column / 2 * 64 + row * 4 + column % 2 * 2, sizeof bits);
  return format::decode_bf16(bits);
}

template <WideCode code>
void multiply_floats(const WideArgs& args) {
  const auto* x = static_cast<const float*>(args.x);
  auto* sums = static_cast<float*>(args.sums);
  const int64_t span = args.scales == nullptr ? args.columns : args.span;
  for (int64_t m = 0; m < args.w; ++m) {
    for (int64_t row = 0; row < kWideRows; ++row) {
      float& total = sums[m * kWideRows + row];
      for (int64_t first = 0, s = 0; first < args.columns; first += span, ++s) {
        float sum = args.scales == nullptr ? total : 0;
        for (int64_t column = first; column < first + span && column < args.columns; ++column)
          sum += code_value<code>(args.weights, row, column) * x[column * args.w + m];
        if (args.scales == nullptr) {
          total = sum;
        } else {
          const float x_scale = args.x_scales == nullptr ? 1 : args.x_scales[s * args.w + m];
          total += sum * x_scale * args.scales[s * kWideRows + row];
        }
      }
    }
  }
}

void multiply_integers(const WideArgs& args) {
  const auto* x = static_cast<const int8_t*>(args.x);
  auto* sums = static_cast<int32_t*>(args.sums);
  for (int64_t m = 0; m < args.w; ++m) {
    for (int64_t row = 0; row < kWideRows; ++row) {
      int32_t sum = 0;
      for (int64_t column = 0; column < args.columns; ++column) {
        sum += args.weights[column / 4 * 64 + row * 4 + column % 4] * x[column / 4 * 4 * args.w + m * 4 + column % 4];
      }
      sums[m * kWideRows + row] += sum;
    }
  }
}

}  // namespace

WidePieces wide_portable(WideCode code) {
  WidePieces pieces;
  pieces.tile_rows = kPortableRows;
  pieces.integers = code == WideCode::int8;
  pieces.x = pieces.integers ? WideX::int8_fours : WideX::floats;
  pieces.multiply = code == WideCode::int8   ? multiply_integers
                    : code == WideCode::e4m3 ? multiply_floats<WideCode::e4m3>
                                             : multiply_floats<WideCode::bf16>;
  return pieces;
}

WidePieces wide_pieces(Isa isa, WideCode code, [[maybe_unused]] bool bf16) {
#if defined(__x86_64__)
  if (code == WideCode::int8) {
    if (isa_covers(isa, Isa::avx512_vnni)) return wide_int8_vnni();
    if (isa_covers(isa, Isa::avx2)) return wide_int8_avx2();
    return wide_portable(code);
  }
  const bool e4m3 = code == WideCode::e4m3;
  // Processors with AMX (all of one maker) run dots of bf16 pairs at half the rate of fused multiply-add, which
  // `gearshift bench` shows as their bf16 and fp32 ceilings below AMX.
  const bool quick_dots = isa_covers(isa, Isa::avx512_bf16) && !isa_covers(isa, Isa::amx);
  if (bf16 && quick_dots) return e4m3 ? wide_e4m3_dot() : wide_bf16_dot();
  if (isa_covers(isa, Isa::avx512)) return e4m3 ? wide_e4m3_avx512() : wide_bf16_avx512();
  if (isa_covers(isa, Isa::avx2)) return e4m3 ? wide_e4m3_avx2() : wide_bf16_avx2();
#endif
  static_cast<void>(isa);
  return wide_portable(code);
}

}  // namespace gearshift
