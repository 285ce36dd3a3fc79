#include "kernel/cuda/operand.h"

#include "base/math.h"
#include "kernel/cuda/stage/prepare_x.h"
#include "kernel/output.h"
#include "kernel/reference/activation.h"

namespace gearshift::cuda {

namespace {

bool is_mx(const ActivationScheme& a) {
  return a.rule == ScaleRule::e8m0_floor || a.rule == ScaleRule::e8m0_ceil || a.rule == ScaleRule::e8m0_even;
}

XRecipe recipe_of(const ActivationScheme& a) {
  const bool integer = a.format == Format::int8;
  if (!integer && is_mx(a)) return XRecipe::mx;
  if (a.format == Format::e2m1) return XRecipe::nvfp4;
  if (a.granularity == Granularity::token_group) return integer ? XRecipe::int8_group : XRecipe::fp8_group;
  if (a.dynamic && a.granularity == Granularity::token) {
    return !integer ? XRecipe::fp8_token : a.symmetric ? XRecipe::int8_token : XRecipe::int8_token_asymmetric;
  }
  return integer ? XRecipe::int8_tensor : XRecipe::fp8_tensor;
}

int64_t element_size(DType element) { return element == DType::f32 ? 4 : element == DType::u8 ? 1 : 2; }

struct Carved {
  uint8_t* values = nullptr;
  float* token_factor = nullptr;
  float* amax = nullptr;
  float* group_scales = nullptr;
  uint8_t* scale_bytes = nullptr;
  int64_t scale_bytes_count = 0;
  int32_t *row_sums = nullptr, *zero_points = nullptr;
};
int64_t carve(const OperandNeeds& needs, int64_t rows, uint8_t* base, Carved* out) {
  Carver carver(base);
  Carved carved;
  carved.values = carver.take<uint8_t>(rows * needs.columns * element_size(needs.element));
  carved.token_factor = carver.take<float>(rows);
  carved.amax = carver.take<float>(most_amax);
  const int64_t groups = needs.group > 0 ? ceil_div(needs.columns, needs.group) : 0;
  if (needs.group_scales == GroupScales::tiles_128x4) {
    carved.scale_bytes_count = ceil_div(rows, 128) * ceil_div(groups, 4) * 512;
    carved.scale_bytes = carver.take<uint8_t>(carved.scale_bytes_count);
  } else if (needs.group_scales != GroupScales::in_values) {
    carved.group_scales = carver.take<float>(groups * ceil_div(rows, 4) * 4);
  }
  if (needs.row_sums) carved.row_sums = carver.take<int32_t>(rows);
  if (needs.element == DType::u8) carved.zero_points = carver.take<int32_t>(rows);
  if (out != nullptr) *out = carved;
  return carver.used();
}

}  // namespace

int64_t operand_bytes(const OperandNeeds& needs, int64_t rows) { return carve(needs, rows, nullptr, nullptr); }

#ifdef GEARSHIFT_CUDA_TARGETS

namespace {

// Scales of groups go where the caller wants them.
bool keep_scales(const OperandNeeds& needs, const Carved& carved, int64_t rows, void* stream, PrepareX& p,
                 Operand& out) {
  if (needs.group_scales == GroupScales::tiles_128x4) {
    out.scale_bytes = p.scale_bytes = carved.scale_bytes;
    p.scale_order = ScaleOrder::tiles_128x4;
    // Rows and groups that a tile has beyond those of x.
    return clear_bytes(carved.scale_bytes, carved.scale_bytes_count, stream);
  }
  if (carved.group_scales == nullptr) return true;
  const bool by_row = needs.group_scales == GroupScales::by_row;
  p.group_scale_row = by_row ? ceil_div(needs.columns, needs.group) : 1;
  p.group_scale_step = by_row ? 1 : ceil_div(rows, 4) * 4;
  p.group_scales = carved.group_scales;
  out.group_scales = carved.group_scales;
  out.group_scale_row = p.group_scale_row;
  out.group_scale_step = p.group_scale_step;
  return true;
}

}  // namespace

bool make_operand(const RunArgs& args, const OperandNeeds& needs, size_t part, int64_t m0, int64_t rows,
                  const float* pre_scale, uint8_t* scratch, Operand& out, const int32_t* gather) {
  const LayerSpec& layer = *args.weights->spec;
  const PartWeights& weights = args.weights->parts[part];
  const bool quantized = quantizes(layer.scheme, needs.use);
  constexpr int64_t bytes = 2;  // contracts take bf16 and fp16
  const auto* x = static_cast<const uint8_t*>(args.x.data) + m0 * args.x.stride * bytes;
  const bool aligned =
      reinterpret_cast<uintptr_t>(x) % 16 == 0 && args.x.stride * bytes % 16 == 0 && layer.k * bytes % 16 == 0;
  out = {};
  if (!quantized && pre_scale == nullptr && gather == nullptr && needs.chosen.source == nullptr &&
      args.x.dtype == needs.element && aligned) {
    out.data = x;
    out.stride = args.x.stride;
    return true;
  }
  Carved carved;
  carve(needs, rows, scratch, &carved);
  PrepareX p;
  p.x = x;
  p.dtype = args.x.dtype;
  p.rows = rows;
  p.k = layer.k;
  p.stride = args.x.stride;
  p.pre_scale = pre_scale;
  p.gather = gather;
  p.chosen = needs.chosen;
  p.out = carved.values;
  p.out_dtype = needs.element;
  p.columns = needs.columns;
  out.data = carved.values;
  out.stride = needs.columns;
  out.padded = true;
  if (quantized) {
    const ActivationScheme& a = *layer.scheme.activation;
    p.recipe = recipe_of(a);
    p.format = a.format;
    p.rule = a.rule;
    p.group = activation_groups(layer.scheme, layer.k, needs.use).group;
    p.amax_limit = a.amax_limit;
    if (p.recipe == XRecipe::nvfp4) {
      p.global = nvfp4_input_global(a, weights);
      out.factor = nvfp4_input_factor(a, weights);
    }
    if (by_tensor(p.recipe) && !a.dynamic) {
      p.scale = weights.input_scale;
      p.zero_point = weights.input_zero_point;
      p.has_zero_point = true;
      out.factor = weights.input_scale > 0 ? weights.input_scale : 0;
    }
    if (by_tensor(p.recipe) && a.dynamic) {
      // The scale comes from all rows, not from this chunk's alone.
      PrepareX whole = p;
      whole.x = args.x.data;
      whole.rows = args.x.rows;
      if (!find_amax(whole, carved.amax, args.stream)) return false;
      p.amax = whole.amax;
      p.amax_count = whole.amax_count;
    }
    const bool codes = needs.element == DType::u8;
    if (by_token(p.recipe) || p.amax != nullptr || (codes && by_tensor(p.recipe)))
      out.token_factor = p.token_factor = carved.token_factor;
    if (needs.chosen.scalars != nullptr) out.token_factor = p.token_factor = carved.token_factor;
    if (out.token_factor != nullptr) out.factor = 1;  // a stored factor is then every token's
    if (codes && (p.recipe == XRecipe::int8_token_asymmetric || p.recipe == XRecipe::int8_tensor))
      out.zero_points = p.zero_points = carved.zero_points;
    out.row_sums = p.row_sums = carved.row_sums;
    if (!keep_scales(needs, carved, rows, args.stream, p, out)) return false;
  }
  return prepare_x(p, args.stream);
}

#endif

}  // namespace gearshift::cuda
