/* A plugin with one kernel: y = x * W^T + bias for float weights stored as bf16, in plain C.
 *
 *   cc -O2 -fPIC -shared -I include examples/plugin/example_plugin.c -o example_plugin.so
 *   gearshift run MODEL --plugin ./example_plugin.so --linear-backend bf16=example
 */
#include <stddef.h>
#include <string.h>

#include "gearshift/gearshift_plugin.h"

static float from_bf16(uint16_t code) {
  const uint32_t bits = (uint32_t)code << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Round to nearest even; NaN stays NaN. */
static uint16_t to_bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value != value) return 0x7FC0;
  return (uint16_t)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

static float load(const gearshift_matrix* matrix, int64_t row, int64_t column) {
  const int64_t i = row * matrix->stride + column;
  return matrix->dtype == GEARSHIFT_F32 ? ((const float*)matrix->data)[i] : from_bf16(((const uint16_t*)matrix->data)[i]);
}

static void store(const gearshift_matrix* matrix, int64_t row, int64_t column, float value) {
  const int64_t i = row * matrix->stride + column;
  if (matrix->dtype == GEARSHIFT_F32) {
    ((float*)matrix->data)[i] = value;
  } else {
    ((uint16_t*)matrix->data)[i] = to_bf16(value);
  }
}

/* Weights as fp32, [N,K]: decoding them once is what this layout is for. */
static int64_t packed_bytes(const gearshift_layer* layer) { return layer->n * layer->k * (int64_t)sizeof(float); }

static void prepare(const gearshift_layer* layer, uint8_t* packed, int threads) {
  (void)threads;
  float* out = (float*)packed;
  for (int64_t p = 0; p < layer->part_count; ++p) {
    const gearshift_part* part = &layer->parts[p];
    for (int64_t i = 0; i < part->n * layer->k; ++i) {
      uint16_t code;
      memcpy(&code, part->weight.data + 2 * i, sizeof code);
      *out++ = from_bf16(code);
    }
  }
}

static float bias_of(const gearshift_part* part, int64_t row) {
  if (part->bias.data == NULL) return 0;
  uint16_t code;
  memcpy(&code, part->bias.data + 2 * row, sizeof code);
  return from_bf16(code);
}

static void run(const gearshift_call* call) {
  const gearshift_layer* layer = call->layer;
  const float* w = (const float*)call->packed;
  int64_t column = 0;
  for (int64_t p = 0; p < layer->part_count; ++p) {
    for (int64_t row = 0; row < layer->parts[p].n; ++row, ++column, w += layer->k) {
      for (int64_t m = 0; m < call->x.rows; ++m) {
        double sum = bias_of(&layer->parts[p], row);
        for (int64_t k = 0; k < layer->k; ++k) sum += (double)load(&call->x, m, k) * w[k];
        store(&call->y, m, column, (float)sum);
      }
    }
  }
}

static const gearshift_kernel kernels[] = {{
    .name = "example_bf16",
    .backend = "example",
    .version = 1,
    .families = "bf16",
    .isa = "portable",
    .weight_formats = "float",
    .storages = "dense",
    .weight_dtypes = "BF16",
    .dtypes = "F32,BF16",
    .n_min = 1,
    .n_multiple = 1,
    .k_min = 1,
    .k_multiple = 1,
    .m_min = 1,
    .bias = 0, /* a bias may be stored in another type than bf16: left to other kernels */
    .experts = 1,
    .bits_same_for_any_m = 1,
    .accumulator = "fp64",
    .layout = "example_fp32_rows",
    .layout_version = 1,
    .packed_bytes = packed_bytes,
    .prepare = prepare,
    .run = run,
    .formula = "y = x * W^T + bias, weights decoded to fp32 once, fp64 sums",
    .why = "an example: simple, not fast",
}};

static const gearshift_plugin_table table = {GEARSHIFT_PLUGIN_ABI, "example", sizeof kernels / sizeof kernels[0], kernels};

const gearshift_plugin_table* gearshift_plugin(int abi) { return abi == GEARSHIFT_PLUGIN_ABI ? &table : NULL; }
