// One parallel region: rows gathered, tiles of the first projection, the function, tiles of the second, sums. Where a
// kernel's rows cannot be divided and there are fewer experts to run than threads, its calls take turns and share the
// threads instead.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstring>

#include "gearshift/moe.h"
#include "kernel/layout/row_offset.h"
#include "kernel/parts.h"
#include "moe/elements.h"
#include "moe/tiles.h"

namespace gearshift {

class ExpertRun {
 public:
  ExpertRun(const ExpertBlock& block, const RoutedTokens& routed, ConstMatrix x, Matrix y, ExpertScratch& scratch,
            int threads)
      : block_(block), routed_(routed), x_(x), y_(y), s_(scratch), threads_(threads) {}

  Result<void> check() const;
  void prepare();
  void run();
  void run_one_by_one();

 private:
  ErrorInfo refuse(std::string_view argument, std::string found, std::string wanted) const;
  // All rows of a tile's tokens as they enter projection `which`.
  ConstMatrix input(int which, int64_t row, int64_t rows) const;
  Matrix output(int which, int64_t row, int64_t rows) const { return at(s_.matrix(which == 0 ? 1 : 3, 0), row, rows); }
  template <class M>
  static M at(M matrix, int64_t row, int64_t rows);
  bool shares_calls(int which) const;
  void run_tile(int which, const ExpertTile& tile, int thread) const;
  void run_whole(int which, const ExpertTile& tile, int threads) const;
  // Of a thread team: these divide their loops among it, where there is one.
  void gather() const;
  void project(int which) const;
  void apply() const;
  void combine() const;

  int64_t entries() const { return routed_.tokens * routed_.top_k; }

  const ExpertBlock& block_;
  const RoutedTokens& routed_;
  ConstMatrix x_;
  Matrix y_;
  ExpertScratch& s_;
  int threads_;
};

// Only a failing call comes here: the texts may allocate.
ErrorInfo ExpertRun::refuse(std::string_view argument, std::string found, std::string wanted) const {
  return {ErrorCode::usage,
          fmt::format("run_experts: {} of layer {}", argument, block_.first().plan->layer.name),
          std::move(found),
          std::move(wanted),
          {},
          {}};
}

Result<void> ExpertRun::check() const {
  const auto number = [](int64_t value) { return std::to_string(value); };
  if (routed_.tokens < 0 || routed_.tokens > s_.tokens_)
    return refuse("tokens", number(routed_.tokens), fmt::format("0 to {}, what the scratch is for", s_.tokens_));
  if (routed_.top_k < 1 || routed_.top_k > s_.top_k_)
    return refuse("top_k", number(routed_.top_k), fmt::format("1 to {}, what the scratch is for", s_.top_k_));
  if (threads_ < 1 || threads_ > s_.threads_)
    return refuse("threads", number(threads_), fmt::format("1 to {}, what the scratch is for", s_.threads_));
  if (x_.rows != routed_.tokens) return refuse("x", fmt::format("{} rows", x_.rows), number(routed_.tokens));
  if (y_.rows != routed_.tokens) return refuse("y", fmt::format("{} rows", y_.rows), number(routed_.tokens));
  if (x_.cols != block_.k()) return refuse("x", fmt::format("{} columns", x_.cols), number(block_.k()));
  if (y_.cols != block_.n()) return refuse("y", fmt::format("{} columns", y_.cols), number(block_.n()));
  if (x_.stride < x_.cols) return refuse("x", fmt::format("stride {}", x_.stride), fmt::format("{} or more", x_.cols));
  if (y_.stride < y_.cols) return refuse("y", fmt::format("stride {}", y_.stride), fmt::format("{} or more", y_.cols));
  if (x_.dtype != s_.dtype_ || y_.dtype != s_.dtype_)
    return refuse("x and y", fmt::format("{} and {}", name(x_.dtype), name(y_.dtype)),
                  fmt::format("{}, what the scratch is for", name(s_.dtype_)));
  if (routed_.tokens > 0 &&
      (x_.data == nullptr || y_.data == nullptr || routed_.experts == nullptr || routed_.weights == nullptr))
    return refuse("x, y or routing", "a null pointer", "data");
  for (int64_t i = 0; i < entries(); ++i) {
    if (routed_.experts[i] < 0 || routed_.experts[i] >= block_.experts())
      return refuse(fmt::format("expert of token {}, slot {},", i / routed_.top_k, i % routed_.top_k),
                    number(routed_.experts[i]), fmt::format("0 to {}", block_.experts() - 1));
  }
  for (int which = 0; which < 2; ++which) {
    for (const PlannedRange& range : block_.projection(which).layer->plan->decision->ranges) {
      const std::vector<DType>& allowed = range.kernel->contract.dtypes;
      if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), x_.dtype) == allowed.end())
        return refuse("x", std::string(name(x_.dtype)),
                      fmt::format("the type the plan was made for ({})", range.kernel->name));
    }
  }
  return {};
}

void ExpertRun::prepare() {
  const auto used = static_cast<size_t>(entries());
  SortedTokens sorted = s_.sorted_;
  sorted.entry = sorted.entry.first(used);
  sorted.place = sorted.place.first(used);
  sort_tokens(routed_, sorted);
  for (int which = 0; which < 2; ++which)
    s_.tile_count_[which] = make_tiles(block_.projection(which), s_.sorted_, threads_, s_.tiles_[which]);
}

template <class M>
M ExpertRun::at(M matrix, int64_t row, int64_t rows) {
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(matrix.data)>>, const uint8_t, uint8_t>;
  matrix.data = static_cast<Byte*>(matrix.data) + row * matrix.stride * bytes_of_element(matrix.dtype);
  matrix.rows = rows;
  return matrix;
}

ConstMatrix ExpertRun::input(int which, int64_t row, int64_t rows) const {
  if (which == 1) return at(s_.activated(0), row, rows);
  // One token alone is read where it is.
  if (rows == 1) return at(x_, s_.sorted_.entry[static_cast<size_t>(row)] / routed_.top_k, 1);
  return at(s_.gathered(0), row, rows);
}

bool ExpertRun::shares_calls(int which) const {
  const int64_t tiles = s_.tile_count_[which];
  return threads_ > 1 && tiles < threads_ && tiles > 0 && !block_.projection(which).divisible;
}

void ExpertRun::run_whole(int which, const ExpertTile& tile, int threads) const {
  const PreparedLayer& layer = *block_.projection(which).layer;
  RunArgs args;
  args.weights = &layer.weights[static_cast<size_t>(tile.expert)];
  args.packed = layer.packed_for(*tile.range->kernel, tile.expert);
  args.x = input(which, tile.row, tile.rows);
  args.y = output(which, tile.row, tile.rows);
  args.threads = threads;
  args.tactic = tile.range->tactic;
  args.workspace = {s_.workspace_, static_cast<size_t>(s_.whole_workspace_bytes_)};
  tile.range->kernel->run(args);
}

void ExpertRun::run_tile(int which, const ExpertTile& tile, int thread) const {
  const ExpertBlock::Projection& projection = block_.projection(which);
  const PreparedLayer& layer = *projection.layer;
  const LayerWeights& weights = layer.weights[static_cast<size_t>(tile.expert)];
  RunArgs args;
  args.weights = &weights;
  args.packed = layer.packed_for(*tile.range->kernel, tile.expert);
  args.x = input(which, tile.row, tile.rows);
  args.y = output(which, tile.row, tile.rows);
  args.threads = 1;
  args.tactic = tile.range->tactic;
  args.workspace = {s_.workspace_ + thread * s_.workspace_bytes_, static_cast<size_t>(s_.workspace_bytes_)};
  if (tile.part >= 0) {
    const auto part = static_cast<size_t>(tile.part);
    LayerWeights& slice = s_.slices_[static_cast<size_t>(thread)];
    slice.spec = &projection.parts[part];
    PartWeights& rows = slice.parts.front();
    rows = weights.parts[part];
    rows.n = tile.count;
    if (!rows.bias.empty()) {
      const auto element = static_cast<size_t>(bits(rows.bias_dtype) / 8);
      rows.bias =
          rows.bias.subspan(static_cast<size_t>(tile.from) * element, static_cast<size_t>(tile.count) * element);
    }
    args.weights = &slice;
    args.packed += *row_offset(*tile.range->kernel->layout, weights, part, tile.from);
    args.y.data =
        static_cast<uint8_t*>(args.y.data) + output_column(weights, part, tile.from) * bytes_of_element(args.y.dtype);
    args.y.cols = tile.count;
  }
  tile.range->kernel->run(args);
}

void ExpertRun::gather() const {
  const Matrix to = s_.matrix(0, entries());
  const auto bytes = static_cast<size_t>(x_.cols * bytes_of_element(x_.dtype));
  const auto experts = static_cast<int64_t>(block_.experts());
#pragma omp for schedule(dynamic, 4)
  for (int64_t e = 0; e < experts; ++e) {
    if (s_.sorted_.rows_of(e) < 2) continue;
    for (int64_t row = s_.sorted_.first[static_cast<size_t>(e)]; row < s_.sorted_.first[static_cast<size_t>(e) + 1];
         ++row) {
      const int64_t token = s_.sorted_.entry[static_cast<size_t>(row)] / routed_.top_k;
      std::memcpy(at(to, row, 1).data, at(x_, token, 1).data, bytes);
    }
  }
}

void ExpertRun::project(int which) const {
  const ExpertTile* tiles = s_.tiles_[which].data();
  const int64_t count = s_.tile_count_[which];
#pragma omp for schedule(dynamic)
  for (int64_t i = 0; i < count; ++i) run_tile(which, tiles[i], omp_get_thread_num());
}

void ExpertRun::apply() const {
  const ExpertRowOrder order{block_.gated(), block_.first().plan->layer.row_order == RowOrder::interleaved};
  const Matrix from = s_.matrix(1, entries()), to = s_.matrix(2, entries());
#pragma omp for schedule(static)
  for (int64_t row = 0; row < entries(); ++row)
    apply_function(block_.function(), order, from.dtype, at(from, row, 1).data, block_.hidden(), at(to, row, 1).data);
}

void ExpertRun::combine() const {
  const Matrix from = s_.matrix(3, entries());
  // Columns at a time: their sums stay in the first-level cache, in the order of slots.
  constexpr int64_t kColumns = 512;
  const int64_t blocks = (block_.n() + kColumns - 1) / kColumns;
#pragma omp for schedule(static)
  for (int64_t item = 0; item < routed_.tokens * blocks; ++item) {
    const int64_t token = item / blocks, n0 = item % blocks * kColumns, count = std::min(kColumns, block_.n() - n0);
    float sums[kColumns] = {};
    with_elements(from.dtype, [&](auto element) {
      for (int64_t slot = 0; slot < routed_.top_k; ++slot) {
        const int64_t entry = token * routed_.top_k + slot;
        const float weight = routed_.weights[entry];
        const void* row = at(from, s_.sorted_.place[static_cast<size_t>(entry)], 1).data;
        for (int64_t n = 0; n < count; ++n) sums[n] += weight * element.load(row, n0 + n);
      }
      void* out = at(y_, token, 1).data;
      for (int64_t n = 0; n < count; ++n) element.store(out, n0 + n, sums[n]);
    });
  }
}

void ExpertRun::run() {
  if (!shares_calls(0) && !shares_calls(1)) {
#pragma omp parallel num_threads(threads_)
    {
      gather();
      project(0);
      apply();
      project(1);
      combine();
    }
    return;
  }
  for (int which = 0; which < 2; ++which) {
#pragma omp parallel num_threads(threads_)
    {
      if (which == 0)
        gather();
      else
        apply();
      if (!shares_calls(which)) project(which);
    }
    for (int64_t i = 0; shares_calls(which) && i < s_.tile_count_[which]; ++i)
      run_whole(which, s_.tiles_[which][static_cast<size_t>(i)], threads_);
  }
#pragma omp parallel num_threads(threads_)
  combine();
}

void ExpertRun::run_one_by_one() {
#pragma omp parallel num_threads(threads_)
  gather();
  for (int which = 0; which < 2; ++which) {
    for (int64_t e = 0; e < block_.experts(); ++e) {
      const int64_t rows = s_.sorted_.rows_of(e);
      if (rows == 0) continue;
      const PlannedRange& range = range_for(*block_.projection(which).layer->plan->decision, rows);
      run_whole(which, {&range, e, s_.sorted_.first[static_cast<size_t>(e)], rows, -1, 0, 0}, threads_);
    }
    if (which == 1) break;
#pragma omp parallel num_threads(threads_)
    apply();
  }
#pragma omp parallel num_threads(threads_)
  combine();
}

Result<void> run_experts(const ExpertBlock& block, const RoutedTokens& routed, ConstMatrix x, Matrix y,
                         ExpertScratch& scratch, int threads) {
  ExpertRun run(block, routed, x, y, scratch, threads);
  if (auto checked = run.check(); !checked) return checked;
  run.prepare();
  if (routed.tokens > 0) run.run();
  return {};
}

Result<void> run_experts_one_by_one(const ExpertBlock& block, const RoutedTokens& routed, ConstMatrix x, Matrix y,
                                    ExpertScratch& scratch, int threads) {
  ExpertRun run(block, routed, x, y, scratch, threads);
  if (auto checked = run.check(); !checked) return checked;
  run.prepare();
  if (routed.tokens > 0) run.run_one_by_one();
  return {};
}

}  // namespace gearshift
