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

bool by_token(XRecipe recipe) { return recipe >= XRecipe::fp8_token && recipe <= XRecipe::int8_token_asymmetric; }
bool by_tensor(XRecipe recipe) { return recipe >= XRecipe::fp8_tensor; }

struct Carved {
  uint8_t* values = nullptr;
  float* token_factor = nullptr;
  uint32_t* amax = nullptr;
};
int64_t carve(const OperandNeeds& needs, int64_t rows, uint8_t* base, Carved* out) {
  Carver carver(base);
  Carved carved;
  carved.values = carver.take<uint8_t>(rows * needs.columns * (needs.element == DType::f32 ? 4 : 2));
  carved.token_factor = carver.take<float>(rows);
  carved.amax = carver.take<uint32_t>(16);
  if (out != nullptr) *out = carved;
  return carver.used();
}

}  // namespace

int64_t operand_bytes(const OperandNeeds& needs, int64_t rows) { return carve(needs, rows, nullptr, nullptr); }

#ifdef GEARSHIFT_CUDA_TARGETS

bool make_operand(const RunArgs& args, const OperandNeeds& needs, size_t part, int64_t m0, int64_t rows,
                  const float* pre_scale, uint8_t* scratch, Operand& out) {
  const LayerSpec& layer = *args.weights->spec;
  const PartWeights& weights = args.weights->parts[part];
  const bool quantized = quantizes(layer.scheme, needs.use);
  const int64_t bytes = args.x.dtype == DType::f32 ? 4 : 2;
  const auto* x = static_cast<const uint8_t*>(args.x.data) + m0 * args.x.stride * bytes;
  const bool aligned =
      reinterpret_cast<uintptr_t>(x) % 16 == 0 && args.x.stride * bytes % 16 == 0 && layer.k * bytes % 16 == 0;
  out = {};
  if (!quantized && pre_scale == nullptr && args.x.dtype == needs.element && aligned) {
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
      p.amax = carved.amax;
    }
    if (by_token(p.recipe) || p.amax != nullptr) out.token_factor = p.token_factor = carved.token_factor;
  }
  return prepare_x(p, args.stream);
}

#endif

}  // namespace gearshift::cuda
