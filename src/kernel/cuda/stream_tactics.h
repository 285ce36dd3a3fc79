// Variants of the streaming decode kernel (stage/stream.cuh), and which one a shape gets. Plain data, so that the
// choice can be looked at without a GPU.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gearshift::cuda {

struct StreamTactic {
  int token_tiles;  // of 8 tokens
  int slabs;        // of 16 rows, per block
  int warps;        // they split the columns of K among them
  int depth;        // units in a warp's ring
  int occupancy;    // blocks per multiprocessor
  bool everywhere;  // also for formats that are rarely met
  double cost;      // of a unit of its work, relative: fitted to an H200 (bench_cuda_kernels --sweep)
};

// Slabs: as many as let every multiprocessor have the same (14: 28672 rows, 4: 8192, 2: 4096; 5: 10240 or, with a
// cluster of two along K, 5120). Twice the slabs in a cluster of two halve what is read of x. 16 warps hide the decoder
// behind the stream; where two tiles of tokens need their registers, 12 or 8. Short rings suit few columns, whose first
// wait is for a full ring. Two small blocks per multiprocessor suit row counts that no slab count divides well, and
// devices with less shared memory.
inline constexpr std::array stream_tactics = {
    StreamTactic{1, 14, 16, 7, 1, false, 1.069}, StreamTactic{1, 10, 16, 5, 1, false, 0.800},
    StreamTactic{1, 8, 16, 4, 1, true, 0.895},   StreamTactic{1, 5, 16, 5, 1, true, 1.009},
    StreamTactic{1, 4, 16, 4, 1, true, 1.138},   StreamTactic{1, 3, 16, 3, 1, false, 1.250},
    StreamTactic{1, 2, 16, 2, 1, true, 1.011},   StreamTactic{1, 7, 8, 7, 2, false, 1.202},
    StreamTactic{1, 4, 8, 4, 2, false, 1.246},   StreamTactic{1, 1, 8, 2, 2, true, 0.985},
    StreamTactic{2, 14, 8, 7, 1, false, 1.212},  StreamTactic{2, 8, 16, 4, 1, false, 1.147},
    StreamTactic{2, 7, 8, 7, 1, true, 1.125},    StreamTactic{2, 5, 12, 5, 1, true, 1.106},
    StreamTactic{2, 4, 12, 4, 1, false, 1.109},  StreamTactic{2, 3, 16, 3, 1, false, 1.250},
    StreamTactic{2, 2, 16, 2, 1, true, 1.126},   StreamTactic{2, 2, 8, 2, 1, false, 1.158},
    StreamTactic{2, 1, 4, 2, 2, true, 1.159}};

// The same for rows of 8-bit codes: a tile of 16 x 128 is twice as large, so rings are shorter or warps fewer.
inline constexpr std::array stream_row_tactics = {
    StreamTactic{1, 14, 16, 2, 1, false, 0.711}, StreamTactic{1, 8, 16, 4, 1, false, 0.847},
    StreamTactic{1, 7, 8, 7, 1, false, 0.775},   StreamTactic{1, 5, 12, 5, 1, true, 0.706},
    StreamTactic{1, 4, 16, 4, 1, true, 0.786},   StreamTactic{1, 3, 16, 3, 1, false, 0.837},
    StreamTactic{1, 2, 16, 2, 1, true, 0.963},   StreamTactic{1, 1, 8, 2, 2, true, 0.810},
    StreamTactic{2, 14, 8, 7, 1, false, 0.780},  StreamTactic{2, 7, 8, 7, 1, true, 0.845},
    StreamTactic{2, 5, 8, 5, 1, false, 0.792},   StreamTactic{2, 4, 12, 4, 1, true, 0.852},
    StreamTactic{2, 3, 12, 3, 1, false, 1.034},  StreamTactic{2, 2, 16, 2, 1, true, 0.960},
    StreamTactic{2, 1, 4, 2, 2, true, 1.007}};

// For experts, many small matrices side by side (units, then rows): blocks of few warps, several per multiprocessor, so
// that one loads while another adds its sums up. Few slabs where few experts are busy, more where x is read again
// often.
inline constexpr std::array stream_group_tactics = {
    StreamTactic{1, 1, 8, 2, 3, true, 1},  StreamTactic{1, 2, 8, 4, 2, false, 1}, StreamTactic{1, 1, 4, 2, 6, false, 1},
    StreamTactic{1, 2, 4, 4, 4, true, 1},  StreamTactic{1, 4, 4, 4, 4, true, 1},  StreamTactic{1, 2, 2, 4, 8, false, 1},
    StreamTactic{2, 1, 4, 2, 4, false, 1}, StreamTactic{2, 2, 4, 4, 3, true, 1},  StreamTactic{2, 4, 4, 4, 3, true, 1}};
inline constexpr std::array stream_row_group_tactics = {
    StreamTactic{1, 1, 8, 2, 3, false, 1}, StreamTactic{1, 1, 4, 2, 6, false, 1}, StreamTactic{1, 2, 4, 4, 4, true, 1},
    StreamTactic{1, 4, 4, 4, 4, true, 1},  StreamTactic{2, 2, 4, 4, 3, true, 1},  StreamTactic{2, 4, 4, 4, 3, true, 1}};

// Bytes from one token's row of a chunk of x to the next: 256 and 16 more, so that ldmatrix meets no bank twice.
inline constexpr int stream_x_row_bytes = 272;

constexpr int stream_ring_bytes(const StreamTactic& t, int unit_bytes) { return t.warps * t.depth * unit_bytes; }
// Two chunks of x per warp.
constexpr int stream_x_bytes(const StreamTactic& t) { return t.warps * 2 * 8 * t.token_tiles * stream_x_row_bytes; }
// Sums of a block in fragment order: 128 floats per slab and token tile.
constexpr int stream_sum_bytes(const StreamTactic& t) { return t.slabs * t.token_tiles * 512; }
// Ring and x, later the sums of all warps in their place; then the sums of the cluster's other blocks, and the row
// records.
constexpr int stream_main_bytes(const StreamTactic& t, int unit_bytes) {
  const int stream = stream_ring_bytes(t, unit_bytes) + stream_x_bytes(t), sums = t.warps * stream_sum_bytes(t);
  return stream > sums ? stream : sums;
}
constexpr int stream_shared_bytes(const StreamTactic& t, int unit_bytes) {
  return stream_main_bytes(t, unit_bytes) + stream_sum_bytes(t) + t.slabs * 256;
}

// "s14w16d7o1c1": slabs, warps, depth, blocks per multiprocessor, blocks of a cluster.
inline std::string stream_tactic_name(const StreamTactic& t, int cluster) {
  const auto part = [](char letter, int value) { return letter + std::to_string(value); };
  return "t" + std::to_string(t.token_tiles) + part('s', t.slabs) + part('w', t.warps) + part('d', t.depth) +
         part('o', t.occupancy) + part('c', cluster);
}

struct StreamChoice {
  int tactic = -1;  // index into stream_tactics; -1: none fits the device
  int cluster = 1;
};
struct StreamDevice {
  int multiprocessors = 132;
  int shared_bytes_per_block = 232448;
  int shared_bytes_per_multiprocessor = 233472;
  bool clusters = true;
};

// Whether a tactic can run at all.
inline bool stream_fits(const StreamTactic& t, int unit_bytes, int64_t slabs, int64_t m, const StreamDevice& device,
                        bool rare) {
  const int bytes = stream_shared_bytes(t, unit_bytes);
  return t.slabs <= slabs && m <= 8 * t.token_tiles && (!rare || t.everywhere) &&
         bytes <= device.shared_bytes_per_block;
}

using StreamTactics = std::span<const StreamTactic>;
// The variant with the least work on the busiest multiprocessor; ties go to the earlier one. rare: only those
// `everywhere`.
StreamChoice choose_stream_tactic(StreamTactics tactics, int64_t slabs, int64_t units_along_k, int64_t m,
                                  int unit_bytes, bool rare, const StreamDevice& device);
// The same among those of groups, of whose tiles `busy` have tokens. Paired: blocks with an even number of slabs.
int choose_stream_group_tactic(StreamTactics tactics, double busy, int64_t slabs, int64_t units_along_k, int64_t m,
                               int unit_bytes, bool rare, bool paired, const StreamDevice& device);
// By name; -1 for an unknown one.
StreamChoice find_stream_tactic(StreamTactics tactics, std::string_view name);
std::vector<std::string_view> stream_tactic_names(StreamTactics tactics);

}  // namespace gearshift::cuda
