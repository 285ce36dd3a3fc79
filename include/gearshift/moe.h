// Expert blocks: a router's choice in, tokens sorted by expert, both projections of every expert as one grouped call
// each, the function between them, the weighted sum out. Around run.
//
// y[t,N] = sum over slots s, in order, of weight[t,s] * down_e(f(gate_up_e(x[t,K]))), e = expert[t,s].
#pragma once

#include "gearshift/routing.h"
#include "gearshift/run.h"

namespace gearshift {

// What a router said: for each token `top_k` experts and their weights. Views; row-major [tokens, top_k]. An expert may
// be named twice by one token; it then counts twice.
struct RoutedTokens {
  int64_t tokens = 0, top_k = 0;
  const int32_t* experts = nullptr;  // 0 to E - 1, as rows of the plan number them
  const float* weights = nullptr;
};

// The entries (token * top_k + slot) of a router's choice, sorted by expert; entries of one expert keep their order.
struct SortedTokens {
  std::span<int32_t> entry;  // [tokens * top_k]
  std::span<int32_t> place;  // [tokens * top_k]: where an entry stands in `entry`
  std::span<int32_t> first;  // [experts + 1]: where an expert's entries begin
  int64_t rows_of(int64_t expert) const {
    return first[static_cast<size_t>(expert) + 1] - first[static_cast<size_t>(expert)];
  }
};
// Fills `sorted`, whose spans are as long as stated. REQUIRES: experts within range.
void sort_tokens(const RoutedTokens& routed, SortedTokens& sorted);

// Both projections of the experts of one layer. Borrows the prepared layers; const use from many threads is safe as
// long as each brings its own scratch.
class ExpertBlock {
 public:
  // `first`: gate and up (N = 2 I; concatenated, or interleaved as its row order says), or up alone (N = I); `second`:
  // down (K = I). Errors usage: no expert rows, numbers of experts or shapes that do not fit, kernels of a device, a
  // function that is not known.
  static Result<ExpertBlock> make(const PreparedLayer& first, const PreparedLayer& second,
                                  const ExpertFunction& function);

  const PreparedLayer& first() const { return *projections_[0].layer; }
  const PreparedLayer& second() const { return *projections_[1].layer; }
  const ExpertFunction& function() const { return function_; }
  bool gated() const { return gated_; }
  int64_t experts() const { return experts_; }
  int64_t k() const { return first().plan->layer.k; }
  int64_t hidden() const { return second().plan->layer.k; }
  int64_t n() const { return second().plan->layer.n; }

  // One projection as the grouped call sees it.
  struct Projection {
    const PreparedLayer* layer = nullptr;
    std::vector<LayerSpec> parts;  // each part as a layer of its own: what a range of its rows is run as
    bool divisible = false;        // rows may be divided among threads
    bool splits_tokens = true;     // an expert's tokens may be divided too: no scale is made from all of them together
  };
  const Projection& projection(int which) const { return projections_[which]; }

 private:
  Projection projections_[2];
  ExpertFunction function_;
  bool gated_ = false;
  int64_t experts_ = 0;
};

// One item of a grouped call: a range of one expert's tokens times a range of its rows.
struct ExpertTile {
  const PlannedRange* range = nullptr;  // whose kernel runs it
  int64_t expert = 0;
  int64_t row = 0, rows = 0;    // among the sorted tokens
  int64_t part = -1;            // -1: every row of the expert
  int64_t from = 0, count = 0;  // rows of that part
};

// All memory that run_experts needs, for up to `tokens` tokens of `top_k` experts each; made once, used by one call at
// a time.
class ExpertScratch {
 public:
  ExpertScratch() = default;
  // Error runtime: not enough memory.
  static Result<ExpertScratch> make(const ExpertBlock& block, int64_t tokens, int64_t top_k, DType dtype, int threads);

  // Fills all of it: nothing that a call reads may be left from before.
  void poison(uint8_t byte);
  int64_t bytes() const { return static_cast<int64_t>(memory_.size()); }
  int threads() const { return threads_; }

  // What the last call left behind, for those who judge it: rows in sorted order.
  const SortedTokens& sorted() const { return sorted_; }
  ConstMatrix gathered(int64_t rows) const;   // x, [rows,K]; experts with one token have no row here
  ConstMatrix projected(int64_t rows) const;  // after the first projection
  ConstMatrix activated(int64_t rows) const;  // after the function
  ConstMatrix outputs(int64_t rows) const;    // after the second
  std::span<const ExpertTile> tiles(int which) const {
    return {tiles_[which].data(), static_cast<size_t>(tile_count_[which])};
  }

 private:
  friend class ExpertRun;
  Matrix matrix(int which, int64_t rows) const;

  int64_t tokens_ = 0, top_k_ = 0;
  DType dtype_ = DType::bf16;
  int threads_ = 1;
  AlignedBuffer memory_;
  uint8_t* matrices_[4] = {};  // gathered, projected, activated, outputs
  int64_t columns_[4] = {};
  SortedTokens sorted_;
  uint8_t* workspace_ = nullptr;       // of thread 0
  int64_t workspace_bytes_ = 0;        // of each thread
  int64_t whole_workspace_bytes_ = 0;  // of a call that all threads share
  std::vector<ExpertTile> tiles_[2];
  int64_t tile_count_[2] = {};
  std::vector<LayerWeights> slices_;  // one per thread
};

// y[tokens,N] from x[tokens,K], both of the dtype of the scratch. Each expert runs with the kernel that its plan has
// for as many rows as it got, in the batch that would give every expert as many. Allocates nothing of its own; no
// result depends on `threads` or on the order in which tiles run. Error usage: shapes, dtypes, experts out of range,
// more tokens or threads than the scratch was made for; nothing has been written then.
Result<void> run_experts(const ExpertBlock& block, const RoutedTokens& routed, ConstMatrix x, Matrix y,
                         ExpertScratch& scratch, int threads);

// The same, one expert after the other, each with all threads: what grouped calls are measured against.
Result<void> run_experts_one_by_one(const ExpertBlock& block, const RoutedTokens& routed, ConstMatrix x, Matrix y,
                                    ExpertScratch& scratch, int threads);

// ---- on a CUDA device ----

// Where a call's stages lie in its workspace; elements as the call's type.
struct DeviceExpertStages {
  // Rows are sorted by expert; else, for few entries, each has the row of its number, and the four lists stay unwritten.
  bool sorted = false;
  int32_t *token = nullptr, *expert = nullptr, *place = nullptr;  // [entries]; place as in SortedTokens, -1: no expert here
  int32_t* first = nullptr;                                       // [experts + 1]
  // After the projections and the function; projected has no data where the first launch applies the function.
  Matrix projected, activated, outputs;
  uint8_t *tiles = nullptr, *workspace = nullptr;
  int64_t bytes = 0;
};

// Both projections of the experts of one layer on the device that holds their weights. Borrows the prepared layers.
class DeviceExperts {
 public:
  // As ExpertBlock::make, for plans whose kernel of one row can take many experts at once; error usage says why not.
  static Result<DeviceExperts> make(const PreparedLayer& first, const PreparedLayer& second,
                                    const ExpertFunction& function);

  const PreparedLayer& layer(int which) const { return *layers_[which]; }
  const ExpertFunction& function() const { return function_; }
  bool gated() const { return gated_; }
  int64_t experts() const { return static_cast<int64_t>(layers_[0]->weights.size()); }
  int64_t k() const { return layers_[0]->plan->layer.k; }
  int64_t hidden() const { return layers_[1]->plan->layer.k; }
  int64_t n() const { return layers_[1]->plan->layer.n; }
  // The kernel that serves a projection in a call of this size: the plan's for many rows where that takes many experts
  // at once and each can expect so many, else its kernel for one row.
  const Kernel& kernel(int which, int64_t tokens, int64_t top_k, DType dtype) const;
  // What each expert's checkpoint says of activations, in device memory; empty: the same of all, or nothing.
  const DeviceBuffer& activation_scalars(int which) const { return scalars_[which]; }
  // `base`: nullptr for the sizes alone.
  DeviceExpertStages stages(int64_t tokens, int64_t top_k, DType dtype, uint8_t* base) const;
  int64_t workspace_bytes(int64_t tokens, int64_t top_k, DType dtype) const {
    return stages(tokens, top_k, dtype, nullptr).bytes;
  }

 private:
  const PreparedLayer* layers_[2] = {};
  const Kernel *few_[2] = {}, *many_[2] = {};  // many_: both or none
  int64_t many_from_ = 0;                      // rows of an expert
  DeviceBuffer scalars_[2];
  ExpertFunction function_;
  bool gated_ = false;
};

// run_experts with everything in the device's memory, the router's choice too: queued on `stream` without a word to the
// host, so that it may be recorded in a graph. Experts outside of 0 .. E - 1 add nothing (they are another rank's).
// `tactics`: of the two projections; "": chosen. The same bits from call to call. Errors: usage, as run_experts;
// runtime: a launch failed.
Result<void> run_experts_on_device(const DeviceExperts& experts, const RoutedTokens& routed, ConstMatrix x, Matrix y,
                                   std::span<uint8_t> workspace, void* stream,
                                   std::span<const std::string_view> tactics = {});

// f of one row: gate and up (or up alone) -> hidden, with one rounding. `projected` [2 I] or [I] of dtype, `out` [I] of
// dtype.
struct ExpertRowOrder {
  bool gated = true, interleaved = false;
};
void apply_function(const ExpertFunction& function, ExpertRowOrder order, DType dtype, const void* projected,
                    int64_t hidden, void* out);

// The whole block in float64, simple on purpose; activations are quantized where the checkpoint quantizes them. What
// stands between the projections is rounded once to `hidden`, the type a model of that type holds it in. y:
// [rows.size(), N], for the tokens `rows`.
void reference_experts(const ExpertBlock& block, const RoutedTokens& routed, const ConstMatrix& x,
                       std::span<const int64_t> rows, DType hidden, double* y, int threads);

}  // namespace gearshift
