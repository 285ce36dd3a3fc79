// Which tiles a block of the prefill kernel computes, in which order. Device code that the host can walk through too.
//
// Tiles are counted in bands of token tiles; inside a band rows are outer, so that the blocks that run at once share
// both weights and tokens in the second-level cache. The first `whole_tiles` go round; the K stages of all others form
// one line that is cut in equal parts, one a block. A block starts with the end of its part and publishes the sum of
// the tile that it leaves unfinished; last comes the tile that blocks before it began, whose sums it adds. So a block
// only ever waits for blocks of lower number, and those never wait before they publish.
#pragma once

#include "kernel/cuda/stage/prefill_call.h"

#ifdef __CUDACC__
#define GEARSHIFT_ANYWHERE __host__ __device__ __forceinline__
#else
#define GEARSHIFT_ANYWHERE inline
#endif

namespace gearshift::cuda {

struct PrefillPiece {
  int tile = 0, first = 0, last = 0;  // stages [first, last) of the tile
};

// Where part number `part` of `parts` of a line begins.
GEARSHIFT_ANYWHERE int part_begin(int line, int parts, int part) {
  const int rest = line % parts;
  return line / parts * part + (part < rest ? part : rest);
}

// The work of worker number `worker`: a block, or a cluster of two that work as one, on halves of the columns (`split`
// 2, `rank` says which) or on neighbouring rows of the same tiles.
class PrefillWork {
 public:
  GEARSHIFT_ANYWHERE PrefillWork(const PrefillCall& call, int stages, int workers, int worker, int split, int rank)
      : stages_(stages),
        whole_(call.whole_tiles),
        next_whole_(worker),
        step_(workers),
        first_(split > 1 ? stages * rank / split : 0),
        last_(split > 1 ? stages * (rank + 1) / split : stages) {
    const int line = (call.row_tiles * call.token_tiles - call.whole_tiles) * stages;
    low_ = part_begin(line, workers, worker);
    high_ = part_begin(line, workers, worker + 1);
  }
  GEARSHIFT_ANYWHERE bool next(PrefillPiece& piece) {
    if (low_ < high_) {
      const int tile = (high_ - 1) / stages_, start = tile * stages_;
      const int first = low_ > start ? low_ - start : 0;
      piece = {whole_ + tile, first, high_ - start};
      high_ = start + first;
      if (piece.first == 0 || piece.last < stages_) return true;
      inherited_ = piece;  // and the part of the line is at its beginning
    }
    if (next_whole_ < whole_) {
      piece = {next_whole_, first_, last_};
      next_whole_ += step_;
      return true;
    }
    piece = inherited_;
    inherited_.last = 0;
    return piece.last > 0;
  }

 private:
  int stages_, whole_, next_whole_, step_, first_, last_, low_, high_;
  PrefillPiece inherited_;
};

struct PrefillTile {
  int row, token;  // in tiles; rows in those of a worker
};
GEARSHIFT_ANYWHERE PrefillTile tile_of(const PrefillCall& call, int tile) {
  const int in_band = call.row_tiles * call.band, band = tile / in_band, rest = tile - band * in_band;
  const int left = call.token_tiles - band * call.band, width = left < call.band ? left : call.band;
  return {rest / width, band * call.band + rest % width};
}

}  // namespace gearshift::cuda
