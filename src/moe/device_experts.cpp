// Up to five launches: tokens sorted into tiles, the first projection (rows of x taken where they are), the function,
// the second projection, the sums. Few tokens are not sorted, and streaming kernels apply the function themselves.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/try.h"
#include "gearshift/moe.h"
#include "kernel/cuda/grouped.h"
#include "kernel/output.h"
#include "moe/block_shapes.h"
#include "moe/elements.h"

namespace gearshift {

namespace {

using Pairs = cuda::StreamFunction::Pairs;

// Where nothing is known of the load: experts that have tokens, and rows of one of them, if each is as likely.
struct ExpectedLoad {
  double busy = 0, rows = 0;
  ExpectedLoad(int64_t experts, int64_t entries) {
    const auto count = static_cast<double>(experts), all = static_cast<double>(entries);
    busy = std::max(1.0, count * (1 - std::pow(1 - 1 / count, all)));
    rows = all / busy;
  }
};

// While nearly every entry has an expert of its own, its weights are read again for another entry of the same expert:
// that costs less than sorting.
constexpr double kRowsUnsorted = 1.15;

cuda::RowFunction row_function(const ExpertFunction& f) {
  using Kind = cuda::RowFunction::Kind;
  const Kind kind = f.kind == ExpertFunction::Kind::gelu        ? Kind::gelu
                    : f.kind == ExpertFunction::Kind::gelu_tanh ? Kind::gelu_tanh
                    : f.kind == ExpertFunction::Kind::relu2     ? Kind::relu2
                                                                : Kind::silu;
  return {kind, f.alpha, f.limit, f.up_offset};
}

ErrorInfo refuse(const DeviceExperts& experts, std::string_view argument, std::string found, std::string wanted) {
  return {ErrorCode::usage,
          fmt::format("run_experts_on_device: {} of layer {}", argument, experts.layer(0).plan->layer.name),
          std::move(found),
          std::move(wanted),
          {},
          {}};
}

Result<void> check(const DeviceExperts& experts, const RoutedTokens& routed, const ConstMatrix& x, const Matrix& y,
                   std::span<uint8_t> workspace) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  if (routed.tokens < 0 || routed.top_k < 1 || routed.tokens * routed.top_k > INT32_MAX / 2)
    return refuse(experts, "tokens x top_k", fmt::format("{} x {}", routed.tokens, routed.top_k), "fewer");
  if (x.rows != routed.tokens || x.cols != experts.k() || x.stride < x.cols)
    return refuse(experts, "x", fmt::format("{} x {}, stride {}", x.rows, x.cols, x.stride),
                  fmt::format("{} x {}", routed.tokens, experts.k()));
  if (y.rows != routed.tokens || y.cols != experts.n() || y.stride < y.cols)
    return refuse(experts, "y", fmt::format("{} x {}, stride {}", y.rows, y.cols, y.stride),
                  fmt::format("{} x {}", routed.tokens, experts.n()));
  for (int which = 0; which < 2; ++which) {
    const Kernel& kernel = experts.kernel(which, routed.tokens, routed.top_k, x.dtype);
    const std::vector<DType>& allowed = kernel.contract.dtypes;
    if (x.dtype != y.dtype || std::find(allowed.begin(), allowed.end(), x.dtype) == allowed.end())
      return refuse(experts, "x and y", fmt::format("{} and {}", name(x.dtype), name(y.dtype)),
                    fmt::format("one type that {} takes", kernel.name));
  }
  const int64_t bytes = experts.workspace_bytes(routed.tokens, routed.top_k, x.dtype);
  if (static_cast<int64_t>(workspace.size()) < bytes || reinterpret_cast<uintptr_t>(workspace.data()) % 64 != 0)
    return refuse(experts, "workspace", number(static_cast<int64_t>(workspace.size())),
                  fmt::format("{} bytes from a multiple of 64 on", bytes));
  return {};
}

}  // namespace

Result<DeviceExperts> DeviceExperts::make(const PreparedLayer& first, const PreparedLayer& second,
                                          const ExpertFunction& function) {
  if (auto checked = check_block_shapes(first, second, function); !checked) return checked.error();
  DeviceExperts experts;
  experts.layers_[0] = &first;
  experts.layers_[1] = &second;
  experts.function_ = function;
  experts.gated_ = first.plan->layer.n != second.plan->layer.k;
  for (int which = 0; which < 2; ++which) {
    const PreparedLayer& layer = experts.layer(which);
    const LayerSpec& spec = layer.plan->layer;
    const Kernel& few = *range_for(*layer.plan->decision, 1).kernel;
    std::string reason = cuda::refuses_group(few, layer.weights);
    if (experts.experts() > cuda::most_experts) reason = fmt::format("{} experts", experts.experts());
    if (reason.empty() && layer.packed_for(few) == nullptr) reason = "weights that are not packed";
    if (!reason.empty())
      return ErrorInfo{ErrorCode::usage,
                       fmt::format("experts of layer {}", spec.name),
                       reason,
                       "experts that one launch of a kernel takes",
                       {},
                       {}};
    experts.few_[which] = &few;
    const std::vector<cuda::ExpertScalars> scalars = cuda::expert_scalars(few, layer.weights);
    const size_t bytes = scalars.size() * sizeof(cuda::ExpertScalars);
    if (bytes > 0) {
      GEARSHIFT_TRY(experts.scalars_[which], DeviceBuffer::allocate(bytes));
      GEARSHIFT_CHECK(experts.scalars_[which].write(scalars.data(), bytes));
    }
    for (const PlannedRange& range : layer.plan->decision->ranges) {
      if (!cuda::is_prefill_group(*range.kernel) || layer.packed_for(*range.kernel) == nullptr ||
          range.kernel->activation != few.activation)
        continue;
      experts.many_[which] = range.kernel;
      experts.many_from_ = std::max(experts.many_from_, range.m_min);
      break;
    }
  }
  if (experts.many_[0] == nullptr || experts.many_[1] == nullptr) experts.many_[0] = experts.many_[1] = nullptr;
  return experts;
}

const Kernel& DeviceExperts::kernel(int which, int64_t tokens, int64_t top_k, DType dtype) const {
  if (many_[0] == nullptr || ExpectedLoad(experts(), tokens * top_k).rows < static_cast<double>(many_from_))
    return *few_[which];
  // Its form for groups multiplies bf16 alone.
  return dtype == DType::bf16 ? *many_[which] : *few_[which];
}

DeviceExpertStages DeviceExperts::stages(int64_t tokens, int64_t top_k, DType dtype, uint8_t* base) const {
  const int64_t entries = tokens * top_k, n1 = layers_[0]->plan->layer.n;
  DeviceExpertStages stages;
  const double expected_rows = ExpectedLoad(experts(), entries).rows;
  for (int which = 0; which < 2; ++which) {
    stages.sorted = stages.sorted || expected_rows > kRowsUnsorted || scalars_[which].size() > 0 ||
                    cuda::is_prefill_group(kernel(which, tokens, top_k, dtype));
  }
  Carver carver(base);
  for (int32_t** list : {&stages.token, &stages.expert, &stages.place}) *list = carver.take<int32_t>(entries);
  stages.first = carver.take<int32_t>(experts() + 1);
  const int64_t tile_tokens = cuda::group_tile_tokens(kernel(0, tokens, top_k, dtype), expected_rows);
  stages.tiles = carver.take<uint8_t>(cuda::most_group_tiles(experts(), entries, tile_tokens) *
                                      static_cast<int64_t>(sizeof(cuda::GroupTile)));
  const auto matrix = [&](int64_t columns) {
    const int64_t stride = (columns + 7) / 8 * 8;
    uint8_t* data = carver.take<uint8_t>(entries * stride * bytes_of_element(dtype));
    return Matrix{data, dtype, entries, columns, stride};
  };
  // Where the first launch applies the function, what it is applied to is never stored.
  if (cuda::fused_pairs(kernel(0, tokens, top_k, dtype), layers_[0]->plan->layer, gated_) == Pairs::none)
    stages.projected = matrix(n1);
  stages.activated = matrix(hidden());
  stages.outputs = matrix(n());
  int64_t most = 0;
  for (int which = 0; which < 2; ++which)
    most =
        std::max(most, cuda::grouped_workspace(kernel(which, tokens, top_k, dtype), layer(which).plan->layer, entries));
  stages.workspace = carver.take<uint8_t>(most);
  stages.bytes = carver.used();
  return stages;
}

Result<void> run_experts_on_device(const DeviceExperts& experts, const RoutedTokens& routed, ConstMatrix x, Matrix y,
                                   std::span<uint8_t> workspace, void* stream,
                                   std::span<const std::string_view> tactics) {
  if (auto checked = check(experts, routed, x, y, workspace); !checked) return checked;
  if (routed.tokens == 0) return {};
  const int64_t entries = routed.tokens * routed.top_k;
  const DeviceExpertStages stages = experts.stages(routed.tokens, routed.top_k, x.dtype, workspace.data());
  const ExpectedLoad load(experts.experts(), entries);
  const bool half = x.dtype == DType::f16;
  const auto kernel_of = [&](int which) -> const Kernel& {
    return experts.kernel(which, routed.tokens, routed.top_k, x.dtype);
  };
  const bool sorted = stages.sorted;
  const Pairs pairs = cuda::fused_pairs(kernel_of(0), experts.layer(0).plan->layer, experts.gated());

  cuda::SortTokens sort;
  sort.experts = routed.experts;
  sort.entries = static_cast<int>(entries);
  sort.top_k = static_cast<int>(routed.top_k);
  sort.expert_count = static_cast<int>(experts.experts());
  sort.token = stages.token;
  sort.expert = stages.expert;
  sort.place = stages.place;
  sort.first = stages.first;
  sort.tiles = reinterpret_cast<cuda::GroupTile*>(stages.tiles);
  sort.tile_tokens =
      static_cast<int>(cuda::group_tile_tokens(experts.kernel(0, routed.tokens, routed.top_k, x.dtype), load.rows));
  sort.tile_count = static_cast<int>(cuda::most_group_tiles(experts.experts(), entries, sort.tile_tokens));

  const auto project = [&](int which) {
    const PreparedLayer& layer = experts.layer(which);
    const Kernel& kernel = kernel_of(which);
    cuda::GroupedCall call;
    call.kernel = &kernel;
    call.experts = layer.weights;
    call.packed = layer.packed_for(kernel);
    const Matrix& in = stages.activated;
    call.x = which == 0 ? x : ConstMatrix{in.data, in.dtype, in.rows, in.cols, in.stride};
    call.y = which == 1 ? stages.outputs : pairs == Pairs::none ? stages.projected : stages.activated;
    if (which == 0) call.function = {pairs, row_function(experts.function())};
    if (sorted) {
      call.group.tiles = sort.tiles;
      call.group.count = sort.tile_count;
      call.chosen.source = which == 0 ? stages.token : nullptr;
      call.chosen.expert = stages.expert;
      call.chosen.count = sort.first + experts.experts();
    } else {
      call.group.experts = routed.experts;
      call.group.expert_count = sort.expert_count;
      call.group.count = sort.entries;
    }
    call.group.expert_bytes = layer.expert_stride(*kernel.layout);
    call.rows = entries;
    if (const DeviceBuffer& scalars = experts.activation_scalars(which); scalars.size() > 0)
      call.chosen.scalars = reinterpret_cast<const cuda::ExpertScalars*>(scalars.data());
    // The first projection lets no launch start before it has seen the tiles itself.
    call.group.ready = which == 1;
    call.tile_tokens = sorted ? sort.tile_tokens : 1;
    // Those of experts with more tokens than a tile are counted as if all had the same.
    call.busy_tiles = sorted ? load.busy * std::ceil(load.rows / static_cast<double>(sort.tile_tokens)) : sort.entries;
    call.workspace = {stages.workspace, static_cast<size_t>(workspace.data() + workspace.size() - stages.workspace)};
    call.stream = stream;
    if (!tactics.empty()) call.tactic = tactics[static_cast<size_t>(which)];
    return cuda::run_grouped(call);
  };

  cuda::ApplyFunction apply;
  apply.function = row_function(experts.function());
  apply.gated = experts.gated();
  apply.interleaved = experts.layer(0).plan->layer.row_order == RowOrder::interleaved;
  apply.half = half;
  apply.projected = static_cast<const uint16_t*>(stages.projected.data);
  apply.projected_stride = stages.projected.stride;
  apply.out = static_cast<uint16_t*>(stages.activated.data);
  apply.out_stride = stages.activated.stride;
  apply.hidden = experts.hidden();
  apply.rows = sort.entries;
  apply.count = sorted ? stages.first + experts.experts() : nullptr;

  cuda::CombineRows combine;
  combine.out = static_cast<const uint16_t*>(stages.outputs.data);
  combine.out_stride = stages.outputs.stride;
  combine.y = static_cast<uint16_t*>(y.data);
  combine.y_stride = y.stride;
  combine.n = experts.n();
  combine.tokens = routed.tokens;
  combine.top_k = sort.top_k;
  combine.place = sorted ? stages.place : nullptr;
  combine.experts = routed.experts;
  combine.expert_count = sort.expert_count;
  combine.weights = routed.weights;
  combine.half = half;

  if ((!sorted || cuda::sort_tokens(sort, stream)) && project(0) &&
      (pairs != Pairs::none || cuda::apply_function(apply, stream)) && project(1) &&
      cuda::combine_rows(combine, stream))
    return {};
  return ErrorInfo{ErrorCode::runtime,
                   fmt::format("experts of layer {}", experts.layer(0).plan->layer.name),
                   "a launch that the device refused",
                   fmt::format("{} tokens of {} experts each to run", routed.tokens, routed.top_k),
                   {},
                   {}};
}

}  // namespace gearshift
