#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "gearshift/moe.h"
#include "kernel/output.h"
#include "moe/elements.h"
#include "moe/tiles.h"

namespace gearshift {

namespace {

// Of any kernel of the plan on up to `rows` rows: what it needs is not always most for the most rows.
int64_t most_workspace(const LayerPlan& plan, const LayerSpec& layer, int64_t rows, int threads) {
  int64_t most = 0;
  for (const PlannedRange& range : plan.decision->ranges) {
    for (int64_t m = 1; m <= rows && range.kernel->workspace_bytes != nullptr; ++m)
      most = std::max(most, range.kernel->workspace_bytes(layer, m, threads));
  }
  return (most + 63) / 64 * 64;
}

}  // namespace

Result<ExpertScratch> ExpertScratch::make(const ExpertBlock& block, int64_t tokens, int64_t top_k, DType dtype,
                                          int threads) {
  ExpertScratch scratch;
  scratch.tokens_ = tokens;
  scratch.top_k_ = top_k;
  scratch.dtype_ = dtype;
  scratch.threads_ = threads;
  const int64_t entries = tokens * top_k;
  for (int which = 0; which < 2; ++which) {
    const ExpertBlock::Projection& projection = block.projection(which);
    const LayerPlan& plan = *projection.layer->plan;
    const int64_t rows = projection.splits_tokens ? std::min(entries, kTileTokens) : entries;
    scratch.workspace_bytes_ = std::max(scratch.workspace_bytes_, most_workspace(plan, plan.layer, rows, 1));
    for (const LayerSpec& part : projection.parts)
      scratch.workspace_bytes_ = std::max(scratch.workspace_bytes_, most_workspace(plan, part, rows, 1));
    scratch.whole_workspace_bytes_ =
        std::max(scratch.whole_workspace_bytes_, most_workspace(plan, plan.layer, entries, threads));
    scratch.tiles_[which].resize(static_cast<size_t>(most_tiles(projection, block.experts(), entries, threads)));
  }
  scratch.columns_[0] = block.k();
  scratch.columns_[1] = block.first().plan->layer.n;
  scratch.columns_[2] = block.hidden();
  scratch.columns_[3] = block.n();
  for (int thread = 0; thread < threads; ++thread) {
    LayerWeights slice;
    slice.parts.resize(1);
    scratch.slices_.push_back(std::move(slice));
  }
  const auto carve = [&](uint8_t* base) {
    Carver carver(base);
    for (int i = 0; i < 4; ++i)
      scratch.matrices_[i] = carver.take<uint8_t>(entries * scratch.columns_[i] * bytes_of_element(dtype));
    const auto count = static_cast<size_t>(entries), ends = static_cast<size_t>(block.experts()) + 1;
    scratch.sorted_.entry = {carver.take<int32_t>(entries), count};
    scratch.sorted_.place = {carver.take<int32_t>(entries), count};
    scratch.sorted_.first = {carver.take<int32_t>(block.experts() + 1), ends};
    scratch.workspace_ =
        carver.take<uint8_t>(std::max(threads * scratch.workspace_bytes_, scratch.whole_workspace_bytes_));
    return carver.used();
  };
  const int64_t bytes = carve(nullptr);
  scratch.memory_ = AlignedBuffer(static_cast<size_t>(bytes));
  if (bytes > 0 && scratch.memory_.size() == 0) {
    return ErrorInfo{ErrorCode::runtime,          "scratch of layer " + block.first().plan->layer.name,
                     "not enough memory",         format_bytes(static_cast<uint64_t>(bytes)),
                     "smaller batches need less", {}};
  }
  carve(scratch.memory_.data());
  return scratch;
}

void ExpertScratch::poison(uint8_t byte) { std::memset(memory_.data(), byte, memory_.size()); }

Matrix ExpertScratch::matrix(int which, int64_t rows) const {
  return {matrices_[which], dtype_, rows, columns_[which], columns_[which]};
}

namespace {
ConstMatrix constant(const Matrix& m) { return {m.data, m.dtype, m.rows, m.cols, m.stride}; }
}  // namespace

ConstMatrix ExpertScratch::gathered(int64_t rows) const { return constant(matrix(0, rows)); }
ConstMatrix ExpertScratch::projected(int64_t rows) const { return constant(matrix(1, rows)); }
ConstMatrix ExpertScratch::activated(int64_t rows) const { return constant(matrix(2, rows)); }
ConstMatrix ExpertScratch::outputs(int64_t rows) const { return constant(matrix(3, rows)); }

}  // namespace gearshift
