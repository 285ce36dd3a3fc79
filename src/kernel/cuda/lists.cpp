// Order is priority. What holds for every list: kernels at the checkpoint's own precision stand before those that take
// its activations as they come, native ones before emulation, the host's reference last.
#include "kernel/cuda/lists.h"

#include "kernel/cuda/kernels.h"
#include "kernel/reference/reference.h"

namespace gearshift {

namespace {

const ListEntry kHostReference{&reference_kernel, 1, 0, "float64 on the host: what is left when nothing else may run"};

constexpr std::string_view kDecode =
    "reads every weight once, as it is stored; up to 16 tokens the arithmetic hides behind memory";
constexpr std::string_view kPrefill =
    "the same weights on Hopper's warpgroup products: from 17 tokens on faster than decoding them to memory first";
constexpr std::string_view kPrefillBytes =
    "the same weights on Hopper's warpgroup products: up to 512 tokens faster than decoding them to memory first";
constexpr std::string_view kPrefillUntimed =
    "the same weights on Hopper's warpgroup products; on request until it has been timed";
constexpr std::string_view kUpgradedBytes =
    "activations are not rounded, weights decoded for Hopper's warpgroup products; on request beside products of codes";
constexpr std::string_view kCodes =
    "codes by codes, all scales in the same kernel: faster than cuBLASLt while its tiles are small, with INT8 always";
constexpr std::string_view kFourByEight =
    "four-bit codes by FP8 codes at the rate of FP8, from a layout of their own; on request until timed beside bf16";
constexpr std::string_view kInvariant = "one order of sums for any M: what a policy of equal bits takes";
constexpr std::string_view kBaseline = "the checkpoint's own arithmetic, any shape and batch size";
constexpr std::string_view kLibrary = "codes by codes at the full rate of 8-bit tensor cores; from 17 tokens on";
constexpr std::string_view kAsStored = "weights and activations of one type, multiplied as they are stored";
constexpr std::string_view kBlockScaled =
    "tensor cores that know the format, from a layout of their own: for layers whose memory budget has room for it";
constexpr std::string_view kUpgradedDevice =
    "activations are not rounded: more exact than the checkpoint asks for, so behind its own";
constexpr std::string_view kRest = "for what the kernels before it do not take, from a layout without tricks";

}  // namespace

std::vector<KernelList> cuda_lists() {
  constexpr Platform cuda = Platform::cuda;
  return {
      {cuda,
       Family::bf16,
       {{&sm80_bf16_cublaslt, 1, 0, kAsStored},
        {&sm80_f16_cublaslt, 1, 0, kAsStored},
        {&sm80_bf16_emulation, 1, 0, kBaseline},
        kHostReference}},
      {cuda,
       Family::w8a16_fp8,
       {{&sm80_w8a16_fp8_stream, 1, 16, kDecode},
        {&sm90_w8a16_fp8_prefill, 17, 512, kPrefillBytes},
        {&sm80_w8a16_fp8_emulation, 1, 0, kBaseline},
        kHostReference}},
      {cuda,
       Family::fp8_w8a8,
       {{&sm80_fp8_w8a8_stream, 1, 16, kDecode},
        {&sm90_fp8_w8a8_prefill, 17, 64, kCodes},
        {&sm89_fp8_w8a8_cublaslt, 1, 0, kLibrary},
        {&sm90_fp8_w8a8_invariant, 1, 0, kInvariant},
        {&sm80_w8a16_fp8_stream, 1, 16, kUpgradedDevice},
        {&sm90_w8a16_fp8_prefill, 17, 0, kUpgradedBytes, true},
        {&sm80_fp8_w8a8_emulation, 1, 0, kBaseline},
        {&sm80_w8a16_fp8_emulation, 1, 0, kUpgradedDevice},
        kHostReference}},
      {cuda,
       Family::fp8_block_w8a8,
       {{&sm80_fp8_block_w8a8_stream, 1, 16, kDecode},
        {&sm90_fp8_block_w8a8_prefill, 17, 64, kCodes},
        {&sm90_fp8_block_w8a8_cublaslt, 1, 0, kLibrary},
        {&sm90_fp8_block_w8a8_invariant, 1, 0, kInvariant},
        {&sm80_w8a16_fp8_stream, 1, 16, kUpgradedDevice},
        {&sm90_w8a16_fp8_prefill, 17, 0, kUpgradedBytes, true},
        {&sm80_fp8_block_w8a8_emulation, 1, 0, kBaseline},
        {&sm80_w8a16_fp8_emulation, 1, 0, kUpgradedDevice},
        kHostReference}},
      {cuda,
       Family::mxfp8,
       {{&sm80_mxfp8_stream, 1, 16, kDecode},
        {&sm90_mxfp8_prefill, 17, 512, kPrefillBytes},
        {&sm100_mxfp8_cublaslt, 1, 0, kBlockScaled},
        {&sm80_mxfp8_emulation, 1, 0, kBaseline},
        kHostReference}},
      {cuda,
       Family::mxfp6,
       {{&sm80_mxfp6_stream, 1, 16, kDecode},
        {&sm90_mxfp6_prefill, 17, 0, kPrefillUntimed, true},
        {&sm80_mxfp6_emulation, 1, 0, kBaseline},
        kHostReference}},
      {cuda,
       Family::mxfp4,
       {{&sm80_mxfp4_stream, 1, 16, kDecode},
        {&sm90_mxfp4_fp8_prefill, 17, 0, kFourByEight, true},
        {&sm90_mxfp4_prefill, 17, 0, kPrefill},
        {&sm80_mxfp4_emulation, 1, 0, kBaseline},
        {&sm80_fp4_emulation, 1, 0, kRest},
        kHostReference}},
      {cuda,
       Family::nvfp4_w4a4,
       {{&sm80_nvfp4_w4a4_stream, 1, 16, kDecode},
        {&sm90_nvfp4_w4a4_prefill, 17, 0, kPrefill},
        {&sm100_nvfp4_w4a4_cublaslt, 1, 0, kBlockScaled},
        {&sm80_nvfp4_w4a16_stream, 1, 16, kUpgradedDevice},
        {&sm90_nvfp4_w4a16_prefill, 17, 0, kUpgradedDevice},
        {&sm80_nvfp4_w4a4_emulation, 1, 0, kBaseline},
        {&sm80_nvfp4_w4a16_emulation, 1, 0, kUpgradedDevice},
        {&sm80_fp4_emulation, 1, 0, kRest},
        kHostReference}},
      {cuda,
       Family::nvfp4_w4a16,
       {{&sm80_nvfp4_w4a16_stream, 1, 16, kDecode},
        {&sm90_nvfp4_w4a16_prefill, 17, 0, kPrefill},
        {&sm80_nvfp4_w4a16_emulation, 1, 0, kBaseline},
        {&sm80_fp4_emulation, 1, 0, kRest},
        kHostReference}},
      {cuda,
       Family::int8_w8a8,
       {{&sm80_int8_w8a8_stream, 1, 16, kDecode},
        {&sm90_int8_w8a8_prefill, 17, 0, kCodes},
        {&sm80_int8_w8a8_cublaslt, 1, 0, kLibrary},
        {&sm80_int8_w8a8_emulation, 1, 0, kBaseline},
        kHostReference}},
      {cuda,
       Family::mixed_precision,
       {{&sm80_int4_w4a16_stream, 1, 16, kDecode},
        {&sm90_int4_w4a16_prefill, 17, 0, kPrefill},
        {&sm80_int8_w8a16_stream, 1, 16, kDecode},
        {&sm90_int8_w8a16_prefill, 17, 512, kPrefillBytes},
        {&sm80_int4_w4a16_emulation, 1, 0, kBaseline},
        {&sm80_mixed_precision_emulation, 1, 0, kRest},
        kHostReference}},
      {cuda,
       Family::w4a8,
       {{&sm80_int4_w4a8_stream, 1, 16, kDecode},
        {&sm90_int4_fp8_prefill, 17, 0, kFourByEight, true},
        {&sm90_int4_w4a8_prefill, 17, 0, kPrefill},
        {&sm80_int4_w4a8_emulation, 1, 0, kBaseline},
        {&sm80_w4a8_emulation, 1, 0, kRest},
        kHostReference}},
  };
}

}  // namespace gearshift
