// Which version serves which instruction set, and the one without any.
#include <cstring>

#include "format/bf16.h"
#include "format/e4m3.h"
#include "format/fp16.h"
#include "kernel/cpu/stage/wide.h"

namespace gearshift {

namespace {

constexpr int64_t kPortableRows = 4;
[[maybe_unused]] constexpr int64_t kInt8TileRows = 16;

template <WideCode code>
float code_value(const uint8_t* codes, int64_t row, int64_t column) {
  if constexpr (code == WideCode::e4m3) return format::e4m3_table[codes[column * kWideRows + row]];
  if constexpr (code == WideCode::int8) return static_cast<float>(codes[column / 4 * 64 + row * 4 + column % 4]) - 128;
  if constexpr (code == WideCode::f32) {
    float value;
    std::memcpy(&value, codes + (column * kWideRows + row) * 4, sizeof value);
    return value;
  }
  uint16_t bits;
  if constexpr (code == WideCode::f16) {
    std::memcpy(&bits, codes + (column * kWideRows + row) * 2, sizeof bits);
    return format::decode_fp16(bits);
  }
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

WidePieces wide_portable(WideCode code, bool integers) {
  WidePieces pieces;
  pieces.tile_rows = kPortableRows;
  pieces.integers = integers;
  pieces.x = integers ? WideX::int8_fours : WideX::floats;
  switch (code) {
    case WideCode::int8:
      pieces.multiply = integers ? multiply_integers : multiply_floats<WideCode::int8>;
      break;
    case WideCode::e4m3:
      pieces.multiply = multiply_floats<WideCode::e4m3>;
      break;
    case WideCode::bf16:
      pieces.multiply = multiply_floats<WideCode::bf16>;
      break;
    case WideCode::f16:
      pieces.multiply = multiply_floats<WideCode::f16>;
      break;
    case WideCode::f32:
      pieces.multiply = multiply_floats<WideCode::f32>;
      break;
  }
  return pieces;
}

WidePieces wide_pieces(Isa isa, WideCode code, bool integers, [[maybe_unused]] bool bf16, [[maybe_unused]] bool tiles,
                       [[maybe_unused]] int64_t m) {
#if defined(__x86_64__)
  const bool pairs = bf16 && (code == WideCode::e4m3 || code == WideCode::bf16);
  // Integer sums are the same by any instruction: for few rows those that need no set-up.
  const bool amx = tiles && isa_covers(isa, Isa::amx);
  if (amx && integers && m >= kInt8TileRows) return wide_int8_amx();
  if (amx && pairs) return code == WideCode::e4m3 ? wide_e4m3_amx() : wide_bf16_amx();
  if (integers && isa_covers(isa, Isa::avx512_vnni)) return wide_int8_vnni();
  if (integers && isa_covers(isa, Isa::avx2)) return wide_int8_avx2();
  // Processors with AMX (all of one maker) run dots of bf16 pairs at half the rate of fused multiply-add, which
  // `gearshift bench` shows as their bf16 and fp32 ceilings below AMX.
  const bool quick_dots = isa_covers(isa, Isa::avx512_bf16) && !isa_covers(isa, Isa::amx);
  if (quick_dots && pairs) return code == WideCode::e4m3 ? wide_e4m3_dot() : wide_bf16_dot();
  if (isa_covers(isa, Isa::avx512)) return wide_float_avx512(code);
  if (isa_covers(isa, Isa::avx2)) return wide_float_avx2(code);
#endif
  static_cast<void>(isa);
  return wide_portable(code, integers);
}

}  // namespace gearshift
