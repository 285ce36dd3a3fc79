/* Kernels from elsewhere: what a shared object exports so that Gearshift plans, proves and runs them like its own.
 *
 * A plugin defines gearshift_plugin(), compiled as C or with extern "C". This file needs nothing of Gearshift but itself.
 * Texts and tables belong to the plugin and live as long as the process; a plugin is never unloaded. Functions may be
 * called from several threads at once; they do not throw, print or exit. docs/plugins.md leads through an example.
 *
 * y[M,N] = x[M,K] * W[N,K]^T + bias[N]
 */
#ifndef GEARSHIFT_PLUGIN_H
#define GEARSHIFT_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GEARSHIFT_PLUGIN_ABI 1

/* Borrowed bytes of the checkpoint: any alignment, little-endian; data is NULL where the layer has none, and while sizes
 * are asked for. */
typedef struct gearshift_bytes {
  const uint8_t* data;
  uint64_t size;
} gearshift_bytes;

/* One module of the checkpoint: n rows of the layer. dtypes are those of safetensors headers: "BF16", "F8_E4M3", "U8". */
typedef struct gearshift_part {
  int64_t n;
  gearshift_bytes weight, scale, zero_point, group_index, pre_scale, bias;
  const char *weight_dtype, *scale_dtype, *zero_point_dtype, *pre_scale_dtype, *bias_dtype;
  float weight_global; /* tensor-wide scale as stored; see global_divides */
  float input_scale;   /* tensor-wide activation scalar as stored; see input_multiplies */
  int32_t input_zero_point;
} gearshift_part;

/* A linear layer, or one expert: parts lie side by side along N. Words are those of `gearshift plan --json`. */
typedef struct gearshift_layer {
  int64_t n, k;
  const char* family;         /* "nvfp4_w4a4" */
  const char* weight_format;  /* "float", "e4m3", "e2m1", "int4", "uint4" ... */
  const char* storage;        /* how codes lie: "dense", "nibbles", "gptq_v1" ... */
  const char* grouping;       /* "tensor", "row", "group", "whole_row", "block" */
  int64_t group_rows, group_cols;
  int symmetric, global_divides, act_order;
  const char* activation_format; /* "" where the checkpoint quantizes no activations */
  int activation_dynamic;
  const char* activation_granularity; /* "tensor", "token", "token_group" */
  int64_t activation_group;
  int input_multiplies;
  int interleaved; /* row 2i comes from the first part, 2i + 1 from the second */
  int64_t part_count;
  const gearshift_part* parts;
} gearshift_layer;

typedef enum gearshift_dtype { GEARSHIFT_F32 = 0, GEARSHIFT_F16 = 1, GEARSHIFT_BF16 = 2 } gearshift_dtype;

/* rows x cols elements, `stride` elements from one row to the next. */
typedef struct gearshift_matrix {
  void* data;
  int dtype; /* gearshift_dtype */
  int64_t rows, cols, stride;
} gearshift_matrix;

typedef struct gearshift_call {
  const gearshift_layer* layer;
  const uint8_t* packed; /* what prepare() wrote, 64-byte aligned; NULL where there is no prepare() */
  gearshift_matrix x;    /* [M,K], not to be written */
  gearshift_matrix y;    /* [M,N], every element to be written, nothing between the rows */
  uint8_t* workspace;    /* 64-byte aligned, contents undefined */
  uint64_t workspace_bytes;
  int threads;
  void* stream; /* devices: what the call is queued on */
} gearshift_call;

/* One kernel. Lists are texts with commas; an empty or NULL list means "no restriction", a maximum of 0 "no limit". */
typedef struct gearshift_kernel {
  const char* name;     /* small letters, digits, '_'; not a name of Gearshift's own */
  const char* backend;  /* what --linear-backend names; not one of Gearshift's own */
  int version;          /* another version is another kernel to proofs and measurements */
  const char* families; /* "bf16,nvfp4_w4a16" */

  /* What it accepts. */
  const char* isa; /* least instruction set: "portable", "avx2", "avx512_vnni" ... */
  const char *weight_formats, *storages, *groupings, *groups;
  const char *weight_dtypes, *scale_dtypes, *activation_formats;
  const char* dtypes; /* of x and y: "F32,BF16" */
  int64_t n_min, n_max, n_multiple;
  int64_t k_min, k_max, k_multiple;
  int64_t m_min, m_max;
  int zero_points, act_order, bias, experts, pre_scale, partial_groups;
  int bits_same_for_any_m, capture_safe; /* facts, not gates */

  /* How it computes. */
  int float_activations;   /* takes x as it comes, also where the checkpoint quantizes activations */
  const char* accumulator; /* "fp32" */
  double bound_c, bound_u; /* |y - ref| <= bound_c * sqrt(K) * bound_u * sum|x||w| + rounding of y; 0: 4 and 2^-24 */

  /* Its packed weights; packed_bytes and prepare are NULL for a kernel that reads the checkpoint's bytes. Kernels of one
   * plugin that name the same layout share the packed bytes. prepare() writes every one of them. */
  const char* layout;
  int layout_version;
  int64_t (*packed_bytes)(const gearshift_layer* layer);
  void (*prepare)(const gearshift_layer* layer, uint8_t* packed, int threads);

  int64_t (*workspace_bytes)(const gearshift_layer* layer, int64_t m, int threads); /* NULL: needs none */
  /* Allocates nothing, takes no lock. */
  void (*run)(const gearshift_call* call);

  const char* formula; /* one line: what it computes */
  const char* why;     /* one line: when it is worth a try */
} gearshift_kernel;

typedef struct gearshift_plugin_table {
  int abi; /* GEARSHIFT_PLUGIN_ABI */
  const char* name;
  int64_t kernel_count;
  const gearshift_kernel* kernels;
} gearshift_plugin_table;

/* The one exported function. `abi` is what the caller speaks; NULL where the plugin does not speak it. */
const gearshift_plugin_table* gearshift_plugin(int abi);

#ifdef __cplusplus
}
#endif

#endif
