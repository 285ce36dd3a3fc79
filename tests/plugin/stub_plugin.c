/* Kernels that misbehave on purpose, each under a backend of its own name. Family bf16. */
#define gearshift_plugin example_plugin
#include "../../examples/plugin/example_plugin.c"
#undef gearshift_plugin

#include <signal.h>
#include <stdlib.h>

static void crash(const gearshift_call* call) {
  (void)call;
  raise(SIGSEGV);
}
static void illegal(const gearshift_call* call) {
  (void)call;
  raise(SIGILL);
}
static void quits(const gearshift_call* call) {
  (void)call;
  _Exit(0);
}
/* Past the canaries, where other memory may begin. */
static void far_write(const gearshift_call* call) {
  run(call);
  ((volatile char*)call->y.data)[call->y.rows * call->y.stride * 4 + 5000] = 1;
}
static void crashing_prepare(const gearshift_layer* layer, uint8_t* packed, int threads) {
  (void)layer, (void)packed, (void)threads;
  raise(SIGSEGV);
}
static void hang(const gearshift_call* call) {
  for (volatile int forever = call->threads; forever != -1;) continue;
}
/* Right for few rows only. */
static void wrong_above_16(const gearshift_call* call) {
  run(call);
  if (call->x.rows > 16) store(&call->y, call->x.rows - 1, 0, 1e6f);
}
static void sparse_nan(const gearshift_call* call) {
  run(call);
  store(&call->y, call->y.rows / 2, call->y.cols / 3, 0.0f / (float)(call->threads - call->threads));
}
static void unwritten_columns(const gearshift_call* call) {
  gearshift_part part = call->layer->parts[0];
  gearshift_layer fewer = *call->layer;
  gearshift_call some = *call;
  part.n -= 1;
  fewer.parts = &part;
  some.layer = &fewer;
  run(&some);
}
static void fast_wrong(const gearshift_call* call) {
  for (int64_t m = 0; m < call->y.rows; ++m)
    for (int64_t n = 0; n < call->y.cols; ++n) store(&call->y, m, n, 0);
}
static void slow(const gearshift_call* call) {
  for (int i = 0; i < 3; ++i) run(call);
}

#define STUB(stub_name, function) STUB_OF(stub_name, function, "stub_fp32_rows", prepare)
#define STUB_OF(stub_name, function, layout_name, packing)                                                              \
  {.name = stub_name, .backend = stub_name, .version = 1, .families = "bf16", .weight_dtypes = "BF16", .dtypes = "F32,BF16", \
   .n_min = 1, .k_min = 1, .m_min = 1, .layout = layout_name, .layout_version = 1, .packed_bytes = packed_bytes,        \
   .prepare = packing, .run = function, .formula = "a test", .why = "a test"}

static const gearshift_kernel stubs[] = {STUB("stub_right", run),
                                         STUB("stub_crash", crash),
                                         STUB("stub_illegal", illegal),
                                         STUB("stub_quits", quits),
                                         STUB("stub_hang", hang),
                                         STUB("stub_wrong_above_16", wrong_above_16),
                                         STUB("stub_sparse_nan", sparse_nan),
                                         STUB("stub_unwritten_columns", unwritten_columns),
                                         STUB("stub_fast_wrong", fast_wrong),
                                         STUB("stub_slow", slow),
                                         STUB("stub_far_write", far_write),
                                         STUB_OF("stub_crash_packing", run, "stub_crash_rows", crashing_prepare)};

static const gearshift_plugin_table stub_table = {GEARSHIFT_PLUGIN_ABI, "stubs", sizeof stubs / sizeof stubs[0], stubs};

const gearshift_plugin_table* gearshift_plugin(int abi) { return abi == GEARSHIFT_PLUGIN_ABI ? &stub_table : NULL; }
