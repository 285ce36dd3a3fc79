// Products of tiles: 16 rows of x, 16 rows of weights, 64 bytes of columns at a time. Panels of wide_rows16 are what
// the instructions want of weights (bf16 pairs, int8 fours, 16 rows beside each other), and x is read by rows.
#include <cstring>

#include "kernel/cpu/stage/amx.h"
#include "kernel/cpu/stage/wide.h"

#if defined(__x86_64__)

namespace gearshift {

namespace {

constexpr int64_t kAmxRows = 32;
constexpr int64_t kTileBytes = 1024;
// Sums leave the tiles once per block.
constexpr int64_t kAmxBlock = 512;
constexpr int64_t kSumsStride = 2 * kWideRows * 4;

// Rows of x that this thread's tiles are set up for; 0: tiles are released. Setting up and releasing take thousands of
// cycles, so tiles stay as they are from one product to the next, until release_tiles().
thread_local int64_t configured_rows = 0;

void configure(int64_t w) {
  if (configured_rows == w) return;
  AmxConfig(w).load();
  configured_rows = w;
}

template <bool Both>
GEARSHIFT_AMX inline __attribute__((always_inline)) void load_sums(const uint8_t* sums) {
  settle_memory();
  _tile_loadd(0, sums, kSumsStride);
  _tile_loadd(1, sums + 64, kSumsStride);
  if constexpr (Both) {
    _tile_loadd(2, sums + 16 * kSumsStride, kSumsStride);
    _tile_loadd(3, sums + 16 * kSumsStride + 64, kSumsStride);
  }
}

template <bool Both>
GEARSHIFT_AMX inline __attribute__((always_inline)) void zero_sums() {
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (Both) {
    _tile_zero(2);
    _tile_zero(3);
  }
}

template <bool Both>
GEARSHIFT_AMX inline __attribute__((always_inline)) void store_sums(uint8_t* sums) {
  _tile_stored(0, sums, kSumsStride);
  _tile_stored(1, sums + 64, kSumsStride);
  if constexpr (Both) {
    _tile_stored(2, sums + 16 * kSumsStride, kSumsStride);
    _tile_stored(3, sums + 16 * kSumsStride + 64, kSumsStride);
  }
  settle_memory();
}

// 64 bytes of columns; x: as many lines as there are rows.
template <bool Both, bool Integers>
GEARSHIFT_AMX inline __attribute__((always_inline)) void step(const uint8_t* x, const uint8_t* first,
                                                              const uint8_t* second) {
  _tile_loadd(6, first, 64);
  _tile_loadd(4, x, 64);
  _tile_loadd(7, second, 64);
  if constexpr (Both) _tile_loadd(5, x + kTileBytes, 64);
  if constexpr (Integers) {
    _tile_dpbsud(0, 4, 6);
    _tile_dpbsud(1, 4, 7);
    if constexpr (Both) {
      _tile_dpbsud(2, 5, 6);
      _tile_dpbsud(3, 5, 7);
    }
  } else {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if constexpr (Both) {
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
}

// The codes that come next from memory; x from the second-level cache two steps ahead, where it has many lines.
template <bool Both>
GEARSHIFT_AMX inline __attribute__((always_inline)) void fetch(const WideArgs& args, const uint8_t* weights,
                                                               const uint8_t* x) {
  if (args.fetches) {
    prefetch_ahead<kTileBytes>(weights);
    prefetch_ahead<kTileBytes>(weights + args.stride);
  }
  if constexpr (Both) prefetch_ahead<2 * kTileBytes, 4 * kTileBytes>(x);
}

// sums += part * scale of x * scale of weights, for the w rows.
GEARSHIFT_AMX void add_scaled(const float* part, const WideArgs& args, int64_t s) {
  const __m512 first = _mm512_loadu_ps(args.scales + 32 * s), second = _mm512_loadu_ps(args.scales + 32 * s + 16);
  auto* sums = static_cast<float*>(args.sums);
  for (int64_t m = 0; m < args.w; ++m, part += 32, sums += 32) {
    const __m512 x_scale = _mm512_set1_ps(args.x_scales == nullptr ? 1 : args.x_scales[s * args.w + m]);
    const __m512 one = _mm512_mul_ps(_mm512_load_ps(part), x_scale);
    const __m512 two = _mm512_mul_ps(_mm512_load_ps(part + 16), x_scale);
    _mm512_storeu_ps(sums, _mm512_fmadd_ps(one, first, _mm512_loadu_ps(sums)));
    _mm512_storeu_ps(sums + 16, _mm512_fmadd_ps(two, second, _mm512_loadu_ps(sums + 16)));
  }
}

// `columns` columns, a multiple of 32, from `weights` and `x` on, which move on.
template <bool Both>
GEARSHIFT_AMX inline __attribute__((always_inline)) void pairs(const WideArgs& args, int64_t columns,
                                                               const uint8_t*& weights, const uint8_t*& x) {
  for (; columns > 0; columns -= 32, weights += kTileBytes, x += 64 * args.w) {
    fetch<Both>(args, weights, x);
    step<Both, false>(x, weights, weights + args.stride);
  }
}

template <bool Both>
GEARSHIFT_AMX void multiply_pairs(const WideArgs& args) {
  configure(args.w);
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const uint8_t*>(args.x);
  auto* sums = static_cast<uint8_t*>(args.sums);
  if (args.scales == nullptr) {
    load_sums<Both>(sums);
    pairs<Both>(args, args.columns, weights, x);
    store_sums<Both>(sums);
  } else {
    alignas(64) float part[kAmxRows * 32];
    for (int64_t first = 0, s = 0; first < args.columns; first += args.span, ++s) {
      zero_sums<Both>();
      pairs<Both>(args, args.columns - first < args.span ? args.columns - first : args.span, weights, x);
      store_sums<Both>(reinterpret_cast<uint8_t*>(part));
      add_scaled(part, args, s);
    }
  }
}

template <bool Both>
GEARSHIFT_AMX void multiply_fours(const WideArgs& args) {
  configure(args.w);
  const uint8_t* weights = args.weights;
  const auto* x = static_cast<const uint8_t*>(args.x);
  auto* sums = static_cast<uint8_t*>(args.sums);
  load_sums<Both>(sums);
  int64_t left = args.columns;
  for (; left >= 64; left -= 64, weights += kTileBytes, x += 64 * args.w) {
    fetch<Both>(args, weights, x);
    step<Both, true>(x, weights, weights + args.stride);
  }
  if (left > 0) {
    // Half a tile of weights; what stands in x behind its end meets zeros.
    alignas(64) uint8_t half[2][kTileBytes] = {};
    std::memcpy(half[0], weights, kTileBytes / 2);
    std::memcpy(half[1], weights + args.stride, kTileBytes / 2);
    settle_memory();
    step<Both, true>(x, half[0], half[1]);
  }
  store_sums<Both>(sums);
}

void multiply_int8(const WideArgs& args) { args.w > 16 ? multiply_fours<true>(args) : multiply_fours<false>(args); }

}  // namespace

GEARSHIFT_AMX void release_tiles() {
  if (configured_rows == 0) return;
  _tile_release();
  configured_rows = 0;
}

namespace {

WidePieces pieces_amx(WideX x) {
  WidePieces pieces;
  pieces.panels = 2;
  pieces.tile_rows = kAmxRows;
  pieces.x = x;
  pieces.block = kAmxBlock;
  pieces.finish = release_tiles;
  return pieces;
}

}  // namespace

void multiply_pairs_amx(const WideArgs& args) {
  args.w > 16 ? multiply_pairs<true>(args) : multiply_pairs<false>(args);
}

WidePieces wide_int8_amx() {
  WidePieces pieces = pieces_amx(WideX::int8_lines);
  pieces.integers = true;
  pieces.multiply = multiply_int8;
  pieces.block = 2 * kAmxBlock;
  return pieces;
}

WidePieces wide_bf16_amx() {
  WidePieces pieces = pieces_amx(WideX::bf16_lines);
  pieces.multiply = multiply_pairs_amx;
  return pieces;
}

WidePieces wide_e4m3_amx() {
  WidePieces pieces = pieces_amx(WideX::bf16_lines);
  pieces.unit = 256;
  pieces.decode = decode_e4m3_pairs;
  pieces.multiply_decoded = multiply_pairs_amx;
  pieces.decoded_bytes = 2;
  return pieces;
}

}  // namespace gearshift

#endif
