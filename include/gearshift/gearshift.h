/* Gearshift for C, and for every language that calls C: libgearshift.so exports what stands here and nothing else.
 *
 * Fallible functions return a status; gearshift_last_error() says more, to the thread that called. Results are written to the last
 * argument, and only where the status is GEARSHIFT_OK. Handles are opaque and freed by the function named after them (NULL is
 * allowed); const handles may be used from many threads at once. Texts that are handed out as char* are freed by
 * gearshift_free_text(). Nothing prints, exits or throws. docs/c.md leads through an example.
 *
 * y[M,N] = x[M,K] * W[N,K]^T + bias[N]
 */
#ifndef GEARSHIFT_H
#define GEARSHIFT_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GEARSHIFT_API __attribute__((visibility("default")))
#else
#define GEARSHIFT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Grows when something here changes its meaning or goes; additions leave it. A library of another ABI must not be called. */
#define GEARSHIFT_ABI_VERSION 1
GEARSHIFT_API uint32_t gearshift_abi_version(void);
GEARSHIFT_API const char* gearshift_version(void); /* "0.1.0" */

/* ---- errors ------------------------------------------------------------------------------------------------------ */

typedef enum gearshift_status {
  GEARSHIFT_OK = 0,
  GEARSHIFT_RUNTIME = 1,            /* the machine or the file system said no */
  GEARSHIFT_USAGE = 2,              /* an option, name or argument is wrong */
  GEARSHIFT_NO_KERNEL = 3,          /* no registered kernel can serve a layer */
  GEARSHIFT_FALLBACK_REFUSED = 4,   /* strict, and a requested backend does not serve a layer */
  GEARSHIFT_DAMAGED_CHECKPOINT = 5, /* a file is damaged or contradicts itself */
  GEARSHIFT_UNSUPPORTED_SCHEME = 6, /* a scheme that is recognised and not loaded */
  GEARSHIFT_SELF_CHECK = 7,         /* a kernel gave wrong numbers and no healthy one is left */
  GEARSHIFT_STOPPED = 8             /* a progress function asked for it */
} gearshift_status;

/* Empty texts where a field has nothing to say; never NULL. */
typedef struct gearshift_error {
  gearshift_status status;
  const char* code;    /* "usage", "damaged_checkpoint" ... */
  const char* message; /* one line: "subject: found ..., wanted ... (hint)" */
  const char *subject, *found, *wanted, *hint;
  size_t detail_count;
  const char* const* details; /* a list that belongs to the error, one line each */
} gearshift_error;
/* Of the last call in this thread that failed; valid until another one fails. Status GEARSHIFT_OK where none has. */
GEARSHIFT_API const gearshift_error* gearshift_last_error(void);

GEARSHIFT_API void gearshift_free_text(char* text);

/* ---- options ------------------------------------------------------------------------------------------------------ */

/* What the command takes as --NAME VALUE (docs/options.md): {"linear-backend", "native"}, {"batch", "1,16"}, {"strict", "1"}.
 * An option that may be repeated is given several times. They stand above the environment (GEARSHIFT_...) and gearshift.toml. */
typedef struct gearshift_option {
  const char *name, *value;
} gearshift_option;

/* How results are shown: as the JSON of the command's --json, as its text, or as its --html page. */
typedef enum gearshift_form { GEARSHIFT_JSON = 0, GEARSHIFT_TEXT = 1, GEARSHIFT_HTML = 2 } gearshift_form;

/* ---- plans -------------------------------------------------------------------------------------------------------- */

typedef struct gearshift_plan gearshift_plan;

/* Opens a model (a directory, a .safetensors file or a config.json), reads its headers and plans it. */
GEARSHIFT_API gearshift_status gearshift_plan_open(const char* model, const gearshift_option* options, size_t option_count,
                                                   gearshift_plan** plan);
GEARSHIFT_API void gearshift_plan_free(gearshift_plan* plan);
/* `width`: columns of the text; other forms take no notice of it. */
GEARSHIFT_API gearshift_status gearshift_plan_show(const gearshift_plan* plan, gearshift_form form, size_t width, char** text);
/* Every candidate of a layer, stage by stage. */
GEARSHIFT_API gearshift_status gearshift_plan_explain(const gearshift_plan* plan, const char* layer, size_t width, char** text);
/* 32 hexadecimal digits that belong to the plan; equal for equal decisions. "" for NULL. */
GEARSHIFT_API const char* gearshift_plan_hash(const gearshift_plan* plan);
/* Compares two plans as JSON. JSON and text only. `differences` may be NULL. */
GEARSHIFT_API gearshift_status gearshift_diff(const char* before_json, const char* after_json, gearshift_form form, size_t width,
                                              size_t* differences, char** text);

/* ---- work --------------------------------------------------------------------------------------------------------- */

/* Called now and then by work that takes long, in the thread that asked for it; anything but 0 stops the work with
 * GEARSHIFT_STOPPED. What was measured by then is kept. */
typedef int (*gearshift_progress)(void* context, size_t done, size_t total, const char* what);

typedef struct gearshift_report gearshift_report;

/* What the command does for a verb: run, verify, tune and quantize with a model; inspect with a model; bench, kernels, devices and
 * doctor without words; store with an action ("list") and what belongs to it. `progress` may be NULL. */
GEARSHIFT_API gearshift_status gearshift_work(const char* verb, const char* const* words, size_t word_count,
                                              const gearshift_option* options, size_t option_count, gearshift_progress progress,
                                              void* context, gearshift_report** report);
GEARSHIFT_API void gearshift_report_free(gearshift_report* report);
/* HTML: of run and verify only. */
GEARSHIFT_API gearshift_status gearshift_report_show(const gearshift_report* report, gearshift_form form, size_t width, char** text);
/* 1: all checks passed (or there were none), 0: the command would exit with 5. */
GEARSHIFT_API int gearshift_report_passed(const gearshift_report* report);

/* ---- tensors ------------------------------------------------------------------------------------------------------ */

/* DLTensor of DLPack 1.x, field by field: a pointer to the one may be passed as the other. Device types 1 (CPU) and 2 (CUDA). */
typedef struct gearshift_tensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t dtype_code, dtype_bits; /* 2/32: fp32, 2/16: fp16, 4/16: bf16, 1/8: uint8 ... */
  uint16_t dtype_lanes;           /* 1 */
  int64_t *shape, *strides;       /* in elements; strides NULL: rows lie one behind the other */
  uint64_t byte_offset;
} gearshift_tensor;

/* ---- layers ------------------------------------------------------------------------------------------------------- */

/* One linear layer, packed and proven for this machine. It keeps what it needs: the plan may be freed before it. */
typedef struct gearshift_linear gearshift_linear;

/* A row of the plan, or a module of a fused row, by name. */
GEARSHIFT_API gearshift_status gearshift_linear_load(const gearshift_plan* plan, const char* layer, gearshift_linear** linear);
/* A layer that is quantized already. Names are those behind the layer's in a checkpoint ("weight_packed", "weight_scale", "bias");
 * "weight" stands for the codes under any name. `scheme`: a preset ("NVFP4", "FP8_DYNAMIC" ...), or a quantization_config as JSON.
 * Codes of types that DLPack lacks come as uint8. Tensors lie in host memory; they are copied. */
GEARSHIFT_API gearshift_status gearshift_linear_from_tensors(const char* scheme, const char* const* names,
                                                             const gearshift_tensor* tensors, size_t tensor_count,
                                                             const gearshift_option* options, size_t option_count,
                                                             gearshift_linear** linear);
/* A float matrix [N,K] of fp32, fp16 or bf16 in host memory, quantized to a preset. `bias` [N] may be NULL. `input_amax`: the largest
 * magnitude of the activations, for presets that store a scale of them; 0: unknown. */
GEARSHIFT_API gearshift_status gearshift_linear_quantize(const char* scheme, const gearshift_tensor* weight,
                                                         const gearshift_tensor* bias, double input_amax,
                                                         const gearshift_option* options, size_t option_count,
                                                         gearshift_linear** linear);
GEARSHIFT_API void gearshift_linear_free(gearshift_linear* linear);

typedef struct gearshift_linear_facts {
  int64_t n, k;
  int64_t experts; /* 0: a linear layer */
  int32_t device_type, device_id;
  uint8_t dtype_code, dtype_bits; /* of x and y as planned; the other two floating types are taken, too */
} gearshift_linear_facts;
GEARSHIFT_API gearshift_status gearshift_linear_about(const gearshift_linear* linear, gearshift_linear_facts* facts);
/* The plan of this layer alone, after its proof. */
GEARSHIFT_API gearshift_status gearshift_linear_show(const gearshift_linear* linear, gearshift_form form, size_t width, char** text);
/* Makes the layer ready for x of a type (DLPack code and bits); the first call of gearshift_linear_run with that type would do it.
 * `workspace`, where given: the bytes that a call of `rows` rows takes. */
GEARSHIFT_API gearshift_status gearshift_linear_prepare(const gearshift_linear* linear, uint8_t dtype_code, uint8_t dtype_bits,
                                                        int64_t rows, uint64_t* workspace);
/* y = x * W^T + bias with the kernel that the plan has for the number of rows. x [..., K] and y [..., N] have the same type and leading
 * dimensions, lie in memory of the layer's device and do not overlap; rows may be apart, elements of a row may not. `expert`: of an
 * expert layer. `workspace`: memory of the device, 64-byte aligned and in use by no other call; NULL: the layer keeps some, one a call
 * at a time on CPUs, one a stream on GPUs. `stream`: a cudaStream_t on which the call is queued; NULL: the default stream. With a type
 * that is prepared, a workspace and a capture-safe kernel the call may be recorded in a CUDA graph. */
GEARSHIFT_API gearshift_status gearshift_linear_run(const gearshift_linear* linear, const gearshift_tensor* x, gearshift_tensor* y,
                                                    int64_t expert, void* workspace, uint64_t workspace_bytes, void* stream);

#ifdef __cplusplus
}
#endif

#endif
