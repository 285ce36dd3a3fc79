// Order is priority. What holds for every list: native kernels at the checkpoint's own precision, then native ones that
// take its activations as they come; then emulation, in the same order; the reference last.
#include "kernel/cpu/lists.h"

#include "kernel/cpu/kernels.h"
#include "kernel/reference/reference.h"

namespace gearshift {

namespace {

// Every list ends with it: slow, right, and portable.
const ListEntry kReference{&reference_kernel, 1, 0, "float64 and portable: what is left when nothing else may run"};

constexpr std::string_view kOwnPrecision = "the checkpoint's own arithmetic, any batch size";
// Where decoding in registers for every tile and decoding a panel once meet, in rows. Between what AVX2 (Zen 3) and
// AVX-512 VNNI (Xeon) show in `gearshift bench --kernel K --batch 4,8,16,32`: integer dots decode so cheaply in
// registers that AVX2 stays with them up to 16 (NVFP4) or 32 rows (MXFP4, int8 activations), VNNI up to 8; fp32
// products of e2m1 meet at 4, those of INT4 at 8.
constexpr int64_t kNvfp4Dots = 8, kMxfp4Dots = 12, kInt4Dots = 12, kE2m1Floats = 4, kInt4Floats = 8;
constexpr std::string_view kRegisters =
    "one pass over four bits a weight; few rows leave the arithmetic hidden behind memory";
constexpr std::string_view kPanel = "weights are decoded once per block for all rows";
// Where tiles of AMX pay for decoding to bf16 instead of to bytes (Xeon).
constexpr int64_t kTileRows = 48, kFp8TileRows = 5;
constexpr std::string_view kTiles = "products of many rows by tiles of bf16, where the processor has them";
constexpr std::string_view kWide = "reads packed codes once and keeps a block of them in cache for all rows";
constexpr std::string_view kUpgraded =
    "activations are not rounded: more exact than the checkpoint asks for, so behind its own";

}  // namespace

std::vector<KernelList> cpu_lists() {
  return {
      {Platform::cpu,
       Family::bf16,
       {{&cpu_bf16_fma, 1, 0, kWide}, {&cpu_bf16_emulation, 1, 0, kOwnPrecision}, kReference}},
      {Platform::cpu,
       Family::w8a16_fp8,
       {{&cpu_fp8_amx, kFp8TileRows, 0, kTiles},
        {&cpu_fp8_fma, 1, 0, kWide},
        {&cpu_w8a16_fp8_emulation, 1, 0, kOwnPrecision},
        kReference}},
      {Platform::cpu,
       Family::fp8_w8a8,
       {{&cpu_fp8_amx, kFp8TileRows, 0, kTiles},
        {&cpu_fp8_fma, 1, 0, kWide},
        {&cpu_fp8_w8a8_emulation, 1, 0, kOwnPrecision},
        {&cpu_w8a16_fp8_emulation, 1, 0, kUpgraded},
        kReference}},
      {Platform::cpu,
       Family::fp8_block_w8a8,
       {{&cpu_fp8_amx, kFp8TileRows, 0, kTiles},
        {&cpu_fp8_fma, 1, 0, kWide},
        {&cpu_fp8_block_w8a8_emulation, 1, 0, kOwnPrecision},
        {&cpu_w8a16_fp8_emulation, 1, 0, kUpgraded},
        kReference}},
      {Platform::cpu,
       Family::mxfp8,
       {{&cpu_fp8_amx, kFp8TileRows, 0, kTiles},
        {&cpu_fp8_fma, 1, 0, kWide},
        {&cpu_mxfp8_emulation, 1, 0, kOwnPrecision},
        kReference}},
      {Platform::cpu,
       Family::mxfp6,
       {{&cpu_fp6_fma, 1, 0, kWide}, {&cpu_mxfp6_emulation, 1, 0, kOwnPrecision}, kReference}},
      {Platform::cpu,
       Family::mxfp4,
       {{&cpu_mxfp4_dot, 1, kMxfp4Dots, kRegisters},
        {&cpu_mxfp4_amx_panel, kTileRows, 0, kTiles},
        {&cpu_mxfp4_dot_panel, 1, 0, kPanel},
        {&cpu_mxfp4_fma, 1, kE2m1Floats, kRegisters},
        {&cpu_mxfp4_fma_panel, 1, 0, kPanel},
        {&cpu_mxfp4_emulation, 1, 0, kOwnPrecision},
        kReference}},
      {Platform::cpu,
       Family::nvfp4_w4a4,
       {{&cpu_nvfp4_w4a4_dot, 1, kNvfp4Dots, kRegisters},
        {&cpu_nvfp4_w4a4_amx_panel, kTileRows, 0, kTiles},
        {&cpu_nvfp4_w4a4_dot_panel, 1, 0, kPanel},
        {&cpu_nvfp4_w4a16_fma, 1, kE2m1Floats, kUpgraded},
        {&cpu_nvfp4_w4a16_fma_panel, 1, 0, kUpgraded},
        {&cpu_nvfp4_w4a4_emulation, 1, 0, kOwnPrecision},
        {&cpu_nvfp4_w4a16_emulation, 1, 0, kUpgraded},
        kReference}},
      {Platform::cpu,
       Family::nvfp4_w4a16,
       {{&cpu_nvfp4_w4a16_fma, 1, kE2m1Floats, kRegisters},
        {&cpu_nvfp4_w4a16_fma_panel, 1, 0, kPanel},
        {&cpu_nvfp4_w4a16_emulation, 1, 0, kOwnPrecision},
        kReference}},
      {Platform::cpu,
       Family::int8_w8a8,
       {{&cpu_int8_w8a8_dot, 1, 0, kWide}, {&cpu_int8_w8a8_emulation, 1, 0, kOwnPrecision}, kReference}},
      {Platform::cpu,
       Family::mixed_precision,
       {{&cpu_int4_fma, 1, kInt4Floats, kRegisters},
        {&cpu_int4_fma_panel, 1, 0, kPanel},
        {&cpu_int8_fma, 1, 0, kWide},
        {&cpu_mixed_precision_emulation, 1, 0, kOwnPrecision},
        kReference}},
      {Platform::cpu,
       Family::w4a8,
       {{&cpu_int4_a8_dot, 1, kInt4Dots, kRegisters},
        {&cpu_int4_a8_dot_panel, 1, 0, kPanel},
        {&cpu_int4_fma, 1, kInt4Floats, kRegisters},
        {&cpu_int4_fma_panel, 1, 0, kPanel},
        {&cpu_w4a8_emulation, 1, 0, kOwnPrecision},
        kReference}},
  };
}

}  // namespace gearshift
