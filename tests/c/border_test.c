/* The C border as a C program uses it: plans, work, layers, every kind of misuse, threads, and a thousand lives of a layer.
 *
 *   border_test MODEL [SEED]     MODEL: a small float checkpoint
 */
#include <gearshift/gearshift.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int failures = 0;

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      printf("%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, gearshift_last_error()->message); \
      ++failures;                                                                             \
    }                                                                                         \
  } while (0)

/* Proofs of this test are not kept. */
static const gearshift_option options[] = {{"store", "off"}, {"device", "cpu"}, {"batch", "1,17"}, {"dtype", "fp32"}};
#define OPTIONS options, sizeof options / sizeof options[0]

static uint32_t state;
static float random_small(void) {
  state = state * 1664525u + 1013904223u;
  return (float)((int)(state >> 24) - 128) / 64;
}

/* fp32 in host memory; `shape` and `strides` belong to the caller. */
static gearshift_tensor fp32(float* data, int32_t ndim, int64_t* shape, int64_t* strides) {
  gearshift_tensor tensor = {data, 1, 0, ndim, 2, 32, 1, shape, strides, 0};
  return tensor;
}

static int starts_with(const char* text, const char* start) { return strncmp(text, start, strlen(start)) == 0; }

/* ---- plans and work ---- */

static void plans(const char* model) {
  gearshift_plan* plan = NULL;
  CHECK(gearshift_plan_open(model, OPTIONS, &plan) == GEARSHIFT_OK);
  if (plan == NULL) return;
  char *json = NULL, *text = NULL, *html = NULL, *why = NULL, *same = NULL;
  CHECK(gearshift_plan_show(plan, GEARSHIFT_JSON, 0, &json) == GEARSHIFT_OK && strstr(json, "gearshift.plan/1") != NULL);
  CHECK(gearshift_plan_show(plan, GEARSHIFT_TEXT, 80, &text) == GEARSHIFT_OK && strstr(text, "linear layers") != NULL);
  for (const char* line = text; line != NULL && *line != '\0'; line = strchr(line, '\n') + 1) {
    CHECK(strchr(line, '\n') != NULL && strchr(line, '\n') - line <= 80);
  }
  CHECK(gearshift_plan_show(plan, GEARSHIFT_HTML, 0, &html) == GEARSHIFT_OK && starts_with(html, "<!doctype html>"));
  CHECK(strlen(gearshift_plan_hash(plan)) == 32 && strstr(json, gearshift_plan_hash(plan)) != NULL);
  CHECK(gearshift_plan_explain(plan, "encoder.layer.0.intermediate.dense", 100, &why) == GEARSHIFT_OK &&
        strstr(why, "reference") != NULL);
  size_t differences = 7;
  CHECK(gearshift_diff(json, json, GEARSHIFT_TEXT, 100, &differences, &same) == GEARSHIFT_OK && differences == 0);
  gearshift_free_text(same);
  CHECK(gearshift_diff(json, "{}", GEARSHIFT_TEXT, 100, NULL, &same) == GEARSHIFT_USAGE);

  gearshift_plan* other = NULL;
  const gearshift_option slow[] = {{"store", "off"}, {"device", "cpu"}, {"linear-backend", "reference"}, {"dtype", "fp32"}};
  char* other_json = NULL;
  CHECK(gearshift_plan_open(model, slow, 4, &other) == GEARSHIFT_OK);
  CHECK(gearshift_plan_show(other, GEARSHIFT_JSON, 0, &other_json) == GEARSHIFT_OK);
  CHECK(gearshift_diff(json, other_json, GEARSHIFT_JSON, 0, &differences, &same) == GEARSHIFT_OK && differences > 0 &&
        strstr(same, "gearshift.diff/1") != NULL);
  gearshift_free_text(same);
  gearshift_free_text(other_json);
  gearshift_plan_free(other);
  gearshift_free_text(why);
  gearshift_free_text(html);
  gearshift_free_text(text);
  gearshift_free_text(json);
  gearshift_plan_free(plan);
  gearshift_plan_free(NULL);
}

struct steps {
  size_t calls, last_total, stop_at;
};
static int count_steps(void* context, size_t done, size_t total, const char* what) {
  struct steps* steps = context;
  ++steps->calls;
  steps->last_total = total;
  return what == NULL || done > total || (steps->stop_at != 0 && steps->calls >= steps->stop_at);
}

static void work(const char* model) {
  gearshift_report* report = NULL;
  struct steps steps = {0, 0, 0};
  CHECK(gearshift_work("verify", &model, 1, OPTIONS, count_steps, &steps, &report) == GEARSHIFT_OK);
  CHECK(gearshift_report_passed(report) == 1 && steps.calls > 1);
  char *json = NULL, *text = NULL, *html = NULL;
  CHECK(gearshift_report_show(report, GEARSHIFT_JSON, 0, &json) == GEARSHIFT_OK && strstr(json, "gearshift.verify/1") != NULL);
  CHECK(gearshift_report_show(report, GEARSHIFT_TEXT, 100, &text) == GEARSHIFT_OK && strlen(text) > 0);
  CHECK(gearshift_report_show(report, GEARSHIFT_HTML, 0, &html) == GEARSHIFT_OK);
  gearshift_free_text(json);
  gearshift_free_text(text);
  gearshift_free_text(html);
  gearshift_report_free(report);

  report = NULL;
  struct steps stopped = {0, 0, 2};
  CHECK(gearshift_work("verify", &model, 1, OPTIONS, count_steps, &stopped, &report) == GEARSHIFT_STOPPED);
  CHECK(report == NULL && stopped.calls == 2 && gearshift_last_error()->status == GEARSHIFT_STOPPED);

  CHECK(gearshift_work("devices", NULL, 0, NULL, 0, NULL, NULL, &report) == GEARSHIFT_OK);
  CHECK(gearshift_report_show(report, GEARSHIFT_HTML, 0, &html) == GEARSHIFT_USAGE);
  gearshift_report_free(report);
  CHECK(gearshift_work("verify", NULL, 0, OPTIONS, NULL, NULL, &report) == GEARSHIFT_USAGE);
  CHECK(gearshift_work("dance", NULL, 0, NULL, 0, NULL, NULL, &report) == GEARSHIFT_USAGE);
  CHECK(strstr(gearshift_last_error()->wanted, "verify") != NULL);
}

/* ---- layers ---- */

enum { N = 48, K = 64, M = 17 };
static float weight[N * K], bias[N], x[M * K], y[M * N];

static gearshift_linear* made(const char* scheme) {
  int64_t weight_shape[] = {N, K}, bias_shape[] = {N};
  const gearshift_tensor w = fp32(weight, 2, weight_shape, NULL), b = fp32(bias, 1, bias_shape, NULL);
  gearshift_linear* linear = NULL;
  CHECK(gearshift_linear_quantize(scheme, &w, &b, 0, OPTIONS, &linear) == GEARSHIFT_OK);
  return linear;
}

/* Largest distance of y from x W^T + bias, relative to the largest magnitude. */
static double distance(const float* in, const float* out, int64_t rows) {
  double worst = 0, most = 0;
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t n = 0; n < N; ++n) {
      double sum = bias[n];
      for (int64_t k = 0; k < K; ++k) sum += (double)in[m * K + k] * weight[n * K + k];
      worst = fmax(worst, fabs(sum - out[m * N + n]));
      most = fmax(most, fabs(sum));
    }
  }
  return worst / most;
}

static void layers(const char* model) {
  int64_t x_shape[] = {M, K}, y_shape[] = {M, N};
  const gearshift_tensor in = fp32(x, 2, x_shape, NULL);
  gearshift_tensor out = fp32(y, 2, y_shape, NULL);
  static const struct {
    const char* scheme;
    double bound;
  } schemes[] = {{"UNQUANTIZED", 1e-5}, {"INT8", 0.03}, {"FP8_DYNAMIC", 0.1}, {"MXFP8", 0.1}, {"NVFP4A16", 0.2}, {"NVFP4", 0.3}};
  for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; ++i) {
    gearshift_linear* linear = made(schemes[i].scheme);
    if (linear == NULL) continue;
    memset(y, 0xFF, sizeof y);
    CHECK(gearshift_linear_run(linear, &in, &out, 0, NULL, 0, NULL) == GEARSHIFT_OK);
    const double found = distance(x, y, M);
    if (!(found < schemes[i].bound)) printf("%s: %g\n", schemes[i].scheme, found);
    CHECK(found < schemes[i].bound);
    gearshift_linear_facts facts;
    CHECK(gearshift_linear_about(linear, &facts) == GEARSHIFT_OK && facts.n == N && facts.k == K && facts.experts == 0 &&
          facts.device_type == 1 && facts.dtype_code == 2 && facts.dtype_bits == 32);
    char* json = NULL;
    CHECK(gearshift_linear_show(linear, GEARSHIFT_JSON, 0, &json) == GEARSHIFT_OK && strstr(json, "\"linear\"") != NULL);
    gearshift_free_text(json);
    gearshift_linear_free(linear);
  }

  /* A workspace of the caller, rows that are apart, leading dimensions, no rows at all. */
  gearshift_linear* linear = made("INT8");
  uint64_t bytes = 0;
  CHECK(gearshift_linear_prepare(linear, 2, 32, M, &bytes) == GEARSHIFT_OK);
  void* workspace = aligned_alloc(64, (size_t)(bytes + 127) / 64 * 64);
  float y_before[M * N];
  memcpy(y_before, y, sizeof y);
  CHECK(gearshift_linear_run(linear, &in, &out, 0, NULL, 0, NULL) == GEARSHIFT_OK);
  memcpy(y_before, y, sizeof y);
  memset(y, 0xFF, sizeof y);
  CHECK(gearshift_linear_run(linear, &in, &out, 0, workspace, bytes, NULL) == GEARSHIFT_OK);
  CHECK(memcmp(y, y_before, sizeof y) == 0);
  if (bytes > 0) {
    CHECK(gearshift_linear_run(linear, &in, &out, 0, workspace, bytes - 1, NULL) == GEARSHIFT_USAGE);
    CHECK(strstr(gearshift_last_error()->subject, "workspace") != NULL);
  }
  free(workspace);
  static float wide[M * (K + 3)], wide_y[M * (N + 5)];
  for (int m = 0; m < M; ++m) memcpy(wide + m * (K + 3), x + m * K, K * sizeof(float));
  int64_t wide_strides[] = {K + 3, 1}, wide_y_strides[] = {N + 5, 1};
  const gearshift_tensor apart = fp32(wide, 2, x_shape, wide_strides);
  gearshift_tensor out_apart = fp32(wide_y, 2, y_shape, wide_y_strides);
  CHECK(gearshift_linear_run(linear, &apart, &out_apart, 0, NULL, 0, NULL) == GEARSHIFT_OK);
  for (int m = 0; m < M; ++m) CHECK(memcmp(wide_y + m * (N + 5), y_before + m * N, N * sizeof(float)) == 0);
  int64_t x_deep[] = {2, 1, 3, K}, y_deep[] = {2, 1, 3, N};
  const gearshift_tensor deep = fp32(x, 4, x_deep, NULL);
  gearshift_tensor out_deep = fp32(y, 4, y_deep, NULL);
  CHECK(gearshift_linear_run(linear, &deep, &out_deep, 0, NULL, 0, NULL) == GEARSHIFT_OK);
  int64_t x_none[] = {0, K}, y_none[] = {0, N};
  const gearshift_tensor none = fp32(NULL, 2, x_none, NULL);
  gearshift_tensor out_none = fp32(NULL, 2, y_none, NULL);
  CHECK(gearshift_linear_run(linear, &none, &out_none, 0, NULL, 0, NULL) == GEARSHIFT_OK);
  gearshift_linear_free(linear);

  /* A row of a plan outlives the plan. */
  gearshift_plan* plan = NULL;
  CHECK(gearshift_plan_open(model, OPTIONS, &plan) == GEARSHIFT_OK);
  CHECK(gearshift_linear_load(plan, "no.such.layer", &linear) == GEARSHIFT_USAGE);
  linear = NULL;
  CHECK(gearshift_linear_load(plan, "encoder.layer.0.intermediate.dense", &linear) == GEARSHIFT_OK);
  gearshift_linear* part = NULL;
  CHECK(gearshift_linear_load(plan, "encoder.layer.0.attention.self.key", &part) == GEARSHIFT_OK);
  gearshift_plan_free(plan);
  gearshift_linear_facts facts;
  CHECK(gearshift_linear_about(linear, &facts) == GEARSHIFT_OK);
  const size_t count = (size_t)(4 * (facts.n + facts.k));
  float* memory = calloc(count, sizeof(float));
  int64_t lx[] = {4, facts.k}, ly[] = {4, facts.n};
  const gearshift_tensor lin = fp32(memory, 2, lx, NULL);
  gearshift_tensor lout = fp32(memory + 4 * facts.k, 2, ly, NULL);
  CHECK(gearshift_linear_run(linear, &lin, &lout, 0, NULL, 0, NULL) == GEARSHIFT_OK);
  free(memory);
  gearshift_linear_free(part);
  gearshift_linear_free(linear);
}

static void from_tensors(void) {
  /* Rows of int8 codes with a scale each: y is exact. */
  static int8_t codes[N * K];
  static float scales[N], one_row[K], result[N];
  for (int i = 0; i < N * K; ++i) codes[i] = (int8_t)((int)(random_small() * 60) | 1);
  for (int n = 0; n < N; ++n) scales[n] = 0.25f;
  int64_t code_shape[] = {N, K}, scale_shape[] = {N, 1}, x_shape[] = {1, K}, y_shape[] = {1, N};
  gearshift_tensor tensors[] = {{codes, 1, 0, 2, 0, 8, 1, code_shape, NULL, 0}, fp32(scales, 2, scale_shape, NULL)};
  const char* names[] = {"weight", "weight_scale"};
  gearshift_linear* linear = NULL;
  CHECK(gearshift_linear_from_tensors("INT8", names, tensors, 2, OPTIONS, &linear) == GEARSHIFT_OK);
  for (int k = 0; k < K; ++k) one_row[k] = 127;
  const gearshift_tensor in = fp32(one_row, 2, x_shape, NULL);
  gearshift_tensor out = fp32(result, 2, y_shape, NULL);
  CHECK(gearshift_linear_run(linear, &in, &out, 0, NULL, 0, NULL) == GEARSHIFT_OK);
  for (int n = 0; n < N; ++n) {
    double sum = 0;
    for (int k = 0; k < K; ++k) sum += 127 * 0.25 * codes[n * K + k];
    CHECK(fabs(result[n] - sum) <= 1e-5 * fabs(sum) + 1e-3);
  }
  gearshift_linear_free(linear);
  linear = NULL;
  CHECK(gearshift_linear_from_tensors("INT8", names, tensors, 1, OPTIONS, &linear) != GEARSHIFT_OK && linear == NULL);
  CHECK(gearshift_linear_from_tensors("INT9", names, tensors, 2, OPTIONS, &linear) == GEARSHIFT_USAGE);
  CHECK(gearshift_linear_from_tensors("{\"quant_method\": ", names, tensors, 2, OPTIONS, &linear) == GEARSHIFT_DAMAGED_CHECKPOINT);
}

static void misuse(void) {
  gearshift_linear* linear = made("INT8");
  int64_t x_shape[] = {M, K}, y_shape[] = {M, N}, short_shape[] = {M, K - 1}, few[] = {M - 1, N}, gaps[] = {2 * K, 2};
  static double doubles[M * K];
  gearshift_tensor in = fp32(x, 2, x_shape, NULL), out = fp32(y, 2, y_shape, NULL), bad;
#define REFUSED(a, b, words)                                                            \
  CHECK(gearshift_linear_run(linear, a, b, 0, NULL, 0, NULL) == GEARSHIFT_USAGE);       \
  CHECK(strstr(gearshift_last_error()->message, words) != NULL)
  bad = fp32(x, 2, short_shape, NULL);
  REFUSED(&bad, &out, "63 columns");
  bad = fp32(y, 2, few, NULL);
  REFUSED(&in, &bad, "16 rows");
  bad = in, bad.data = doubles, bad.dtype_bits = 64;
  REFUSED(&bad, &out, "F64");
  bad = out, bad.dtype_code = 4, bad.dtype_bits = 16;
  REFUSED(&in, &bad, "BF16");
  bad = in, bad.device_type = 2;
  REFUSED(&bad, &out, "cuda:0");
  bad = in, bad.strides = gaps;
  REFUSED(&bad, &out, "2 apart");
  bad = in, bad.ndim = 0;
  REFUSED(&bad, &out, "dimensions");
  bad = in, bad.data = NULL;
  REFUSED(&bad, &out, "null pointer");
  bad = in, bad.byte_offset = 1;
  REFUSED(&bad, &out, "multiple of 4");
  int64_t far[] = {INT64_MAX / 2, 1}, wraps[] = {0, INT64_MAX / 2, 1}, few_x[] = {2, 4, K}, below[] = {-K, 1};
  bad = in, bad.strides = far;
  REFUSED(&bad, &out, "memory that exists");
  bad = fp32(x, 3, few_x, NULL), bad.strides = wraps;
  REFUSED(&bad, &out, "memory that exists");
  bad = in, bad.strides = below;
  REFUSED(&bad, &out, "-64");
  bad = in, bad.dtype_lanes = 2;
  REFUSED(&bad, &out, "2 lanes");
  bad = in, bad.dtype_code = 99;
  REFUSED(&bad, &out, "99");
  bad = fp32(x, 2, y_shape, NULL);
  REFUSED(&in, &bad, "memory that x uses");
  CHECK(gearshift_linear_run(linear, &in, &out, 5, NULL, 0, NULL) == GEARSHIFT_USAGE);
  CHECK(gearshift_linear_run(NULL, &in, &out, 0, NULL, 0, NULL) == GEARSHIFT_USAGE);
  CHECK(gearshift_linear_run(linear, NULL, &out, 0, NULL, 0, NULL) == GEARSHIFT_USAGE);
  CHECK(gearshift_linear_prepare(linear, 2, 64, 1, NULL) == GEARSHIFT_USAGE);
  CHECK(gearshift_linear_prepare(linear, 2, 32, -1, NULL) == GEARSHIFT_USAGE);
  gearshift_linear_free(linear);
  gearshift_linear_free(NULL);

  gearshift_plan* plan = NULL;
  CHECK(gearshift_plan_open("/no/such/model", OPTIONS, &plan) == GEARSHIFT_USAGE && plan == NULL);
  CHECK(strstr(gearshift_last_error()->subject, "/no/such/model") != NULL);
  CHECK(strcmp(gearshift_last_error()->code, "usage") == 0);
  CHECK(gearshift_plan_open(NULL, OPTIONS, &plan) == GEARSHIFT_USAGE);
  const gearshift_option unknown = {"bacth", "1"}, other = {"output", "x"}, of_command = {"json", "x"}, empty = {NULL, "1"};
  CHECK(gearshift_plan_open("/", &unknown, 1, &plan) == GEARSHIFT_USAGE && strstr(gearshift_last_error()->hint, "batch") != NULL);
  CHECK(gearshift_plan_open("/", &other, 1, &plan) == GEARSHIFT_USAGE);
  CHECK(gearshift_plan_open("/", &of_command, 1, &plan) == GEARSHIFT_USAGE);
  CHECK(gearshift_plan_open("/", &empty, 1, &plan) == GEARSHIFT_USAGE);
  CHECK(gearshift_plan_open("/", NULL, 1, &plan) == GEARSHIFT_USAGE);

  weight[5 * K + 7] = NAN;
  int64_t weight_shape[] = {N, K}, flat[] = {N * K};
  gearshift_tensor w = fp32(weight, 2, weight_shape, NULL);
  CHECK(gearshift_linear_quantize("INT8", &w, NULL, 0, OPTIONS, &linear) == GEARSHIFT_DAMAGED_CHECKPOINT);
  weight[5 * K + 7] = 1;
  w.shape = flat, w.ndim = 1;
  CHECK(gearshift_linear_quantize("INT8", &w, NULL, 0, OPTIONS, &linear) == GEARSHIFT_USAGE);
  w = fp32(weight, 2, weight_shape, NULL);
  CHECK(gearshift_linear_quantize("INT9", &w, NULL, 0, OPTIONS, &linear) == GEARSHIFT_USAGE);
  CHECK(gearshift_linear_quantize("INT8", &w, NULL, INFINITY, OPTIONS, &linear) == GEARSHIFT_USAGE);
  CHECK(gearshift_linear_quantize("W4A16", &w, NULL, 0, OPTIONS, &linear) == GEARSHIFT_USAGE); /* K = 64, groups of 128 */
}

/* ---- threads ---- */

struct caller {
  const gearshift_linear* linear;
  const float* expected;  /* of all M rows */
  int wrong;
};
static void* call_often(void* context) {
  struct caller* caller = context;
  float out[M * N];
  for (int i = 0; i < 200; ++i) {
    const int64_t rows = 1 + i % M;
    int64_t x_shape[] = {rows, K}, y_shape[] = {rows, N};
    const gearshift_tensor in = fp32(x, 2, x_shape, NULL);
    gearshift_tensor to = fp32(out, 2, y_shape, NULL);
    memset(out, 0xFF, sizeof out);
    if (gearshift_linear_run(caller->linear, &in, &to, 0, NULL, 0, NULL) != GEARSHIFT_OK) ++caller->wrong;
    for (int64_t j = 0; j < rows * N; ++j) {
      if (!(fabsf(out[j] - caller->expected[j]) <= 1e-3f * fabsf(caller->expected[j]) + 1e-3f)) ++caller->wrong;
    }
  }
  /* Errors belong to the thread that made them. */
  gearshift_plan* plan = NULL;
  const char* mine = caller->linear == NULL ? "" : "/no/such/model/of/a/thread";
  if (gearshift_plan_open(mine, NULL, 0, &plan) != GEARSHIFT_USAGE) ++caller->wrong;
  return NULL;
}

static void threads(void) {
  gearshift_linear* linear = made("NVFP4");
  int64_t x_shape[] = {M, K}, y_shape[] = {M, N};
  const gearshift_tensor in = fp32(x, 2, x_shape, NULL);
  gearshift_tensor out = fp32(y, 2, y_shape, NULL);
  CHECK(gearshift_linear_run(linear, &in, &out, 0, NULL, 0, NULL) == GEARSHIFT_OK);
  struct caller callers[4];
  pthread_t ids[4];
  CHECK(gearshift_plan_open("/the/main/thread", NULL, 0, &(gearshift_plan*){NULL}) == GEARSHIFT_USAGE);
  for (int i = 0; i < 4; ++i) {
    callers[i] = (struct caller){linear, y, 0};
    CHECK(pthread_create(&ids[i], NULL, call_often, &callers[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) {
    pthread_join(ids[i], NULL);
    CHECK(callers[i].wrong == 0);
  }
  CHECK(strstr(gearshift_last_error()->subject, "/the/main/thread") != NULL);
  gearshift_linear_free(linear);
}

/* ---- memory ---- */

static long resident_kb(void) {
  long pages = 0, resident = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = -1;
  if (file != NULL) fclose(file);
  return resident < 0 ? -1 : resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void many_lives(void) {
  long before = 0;
  for (int i = 0; i < 1200; ++i) {
    gearshift_linear* linear = made("UNQUANTIZED");
    int64_t x_shape[] = {1, K}, y_shape[] = {1, N};
    const gearshift_tensor in = fp32(x, 2, x_shape, NULL);
    gearshift_tensor out = fp32(y, 2, y_shape, NULL);
    CHECK(gearshift_linear_run(linear, &in, &out, 0, NULL, 0, NULL) == GEARSHIFT_OK);
    gearshift_linear_free(linear);
    if (i == 199) before = resident_kb();
  }
  const long grown = resident_kb() - before;
  printf("1000 lives of a layer: %ld kB more\n", grown);
  /* The weights alone of a thousand layers would be 12 MB. */
  CHECK(before > 0 && grown < 2048);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  state = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : (uint32_t)time(NULL);
  printf("seed %u\n", state);
  CHECK(gearshift_abi_version() == GEARSHIFT_ABI_VERSION);
  CHECK(strlen(gearshift_version()) >= 5 && gearshift_last_error()->status == GEARSHIFT_OK);
  for (int i = 0; i < N * K; ++i) weight[i] = random_small();
  for (int i = 0; i < N; ++i) bias[i] = random_small();
  for (int i = 0; i < M * K; ++i) x[i] = random_small();
  plans(argv[1]);
  work(argv[1]);
  layers(argv[1]);
  from_tensors();
  misuse();
  threads();
  many_lives();
  printf("%d failures\n", failures);
  return failures != 0;
}
