// What vLLM chooses, example by example: the numbers are those of the written-down worked examples of its selection;
// "doubtful" marks those whose source was not wholly visible. Layers are made by hand, planned like any others.
#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "plan/stubs.h"

namespace gearshift {
namespace {

using namespace stubs;

// ---- schemes --------------------------------------------------------------------------------------------------------

Scheme fp8(Grouping::Kind weights, std::optional<Granularity> activations, bool dynamic) {
  Scheme scheme = quantized(Format::e4m3, Storage::dense, {weights, 1, 0}, DType::f32);
  if (!activations) return scheme;
  scheme.activation = ActivationScheme{};
  scheme.activation->granularity = *activations;
  scheme.activation->dynamic = dynamic;
  scheme.activation->stored_scale = !dynamic;
  return scheme;
}
Scheme fp8_tensor_static() { return fp8(Grouping::Kind::tensor, Granularity::tensor, false); }
Scheme fp8_tensor_dynamic() { return fp8(Grouping::Kind::tensor, Granularity::tensor, true); }
Scheme fp8_channel_token() { return fp8(Grouping::Kind::row, Granularity::token, true); }
Scheme fp8_weights_only() { return fp8(Grouping::Kind::row, std::nullopt, true); }

Scheme int8(bool dynamic = true, bool symmetric = true) {
  Scheme scheme = int8_scheme();
  scheme.activation->dynamic = dynamic;
  scheme.activation->symmetric = symmetric;
  return scheme;
}

// vLLM's uint4b8, uint3b4 ...: offset by half of the range, no zero points.
Scheme offset_codes(Format format, int64_t group) {
  return quantized(format, Storage::gptq_v1, groups_of(group), DType::f16);
}
Scheme uint4b8(int64_t group = 128) { return offset_codes(Format::uint4, group); }
Scheme uint4_with_zero_points(int64_t group = 128) { return awq_scheme(group); }

Scheme int4_w4a8(int64_t group, Format activations = Format::int8) {
  Scheme scheme = quantized(Format::int4, Storage::dense_bits, groups_of(group), DType::bf16);
  scheme.activation = ActivationScheme{};
  scheme.activation->format = activations;
  return scheme;
}

Scheme mx(Format weights, std::optional<Format> activations) {
  Scheme scheme = mx_scheme(weights, weights == Format::e4m3 ? Storage::dense : Storage::nibbles, Format::e2m1);
  if (activations)
    scheme.activation->format = *activations;
  else
    scheme.activation.reset();
  return scheme;
}

// ---- examples -------------------------------------------------------------------------------------------------------

struct Example {
  std::string number;
  std::string device;  // as --device takes it
  Scheme scheme;
  std::string kernel;  // "": vLLM raises
  int reasons = -1;    // candidates whose reasons vLLM lists where it raises; -1: not stated
  Policy policy = {};
  std::string warning = "";  // a code the plan must have
  LayerKind kind = LayerKind::linear;
  int64_t n = 4096, k = 4096;
  std::string quant_method = "", model_type = "";
  int64_t tp = 0;  // the layer's input columns are divided among as many ranks
};

void PrintTo(const Example& example, std::ostream* out) {
  *out << example.number << " on " << example.device << ", wants "
       << (example.kernel.empty() ? "an error" : example.kernel);
}

Policy assume(std::vector<std::pair<std::string, std::string>> facts) {
  Policy policy;
  policy.assume = std::move(facts);
  return policy;
}
Policy disabled(std::string kernels) { return assume({{"VLLM_DISABLED_KERNELS", std::move(kernels)}}); }
Policy without(std::vector<std::string> packages) {
  Policy policy;
  policy.without = std::move(packages);
  return policy;
}
Policy with(std::vector<std::string> packages, Policy policy = {}) {
  policy.with = std::move(packages);
  return policy;
}
Policy in(DType dtype, Policy policy = {}) {
  policy.dtype = dtype;
  return policy;
}
Policy experts_prefer(std::string backend, Policy policy = {}) {
  policy.moe.global = std::move(backend);
  return policy;
}
const Policy kBatchInvariant = assume({{"VLLM_BATCH_INVARIANT", "1"}});
const Policy kAiter = with({"aiter", "conch", "quark"}, assume({{"VLLM_ROCM_USE_AITER", "1"}}));

DeviceProfile device_named(const std::string& name) {
  if (name == "zen") {
    DeviceProfile zen = find_device("avx512_bf16", here()).value();
    zen.name = "AMD EPYC 9654";
    return zen;
  }
  return find_device(name, here()).value();
}

std::vector<Example> worked_examples() {
  const auto lin = LayerKind::linear, moe = LayerKind::experts;
  const std::string b12x_packages = "b12x";
  const auto all_with_b12x = [](Policy policy = {}) {
    return with({"flashinfer", "humming", "deep_gemm", "b12x"}, std::move(policy));
  };
  std::vector<Example> examples = {
      {"1", "sm_80", int8(), "CutlassInt8ScaledMMLinearKernel"},
      {"2", "sm_100", int8(), "CutlassInt8ScaledMMLinearKernel"},
      {"3", "sm_80", int8(), "CutlassInt8ScaledMMLinearKernel", -1, prefer("marlin"), "backend_not_covered"},
      {"5", "gfx942", int8(), "AiterInt8ScaledMMLinearKernel", -1, kAiter},
      {"7", "zen", int8(), "ZentorchInt8ScaledMMLinearKernel", -1, with({"zentorch"})},
      {"7_static", "zen", int8(false), "CPUInt8ScaledMMLinearKernel", -1, with({"zentorch"})},
      {"8", "xpu", int8(), "TritonInt8ScaledMMLinearKernel"},
      {"9", "sm_90", fp8_tensor_static(), "CutlassFP8ScaledMMLinearKernel"},
      {"10", "sm_100", fp8_tensor_static(), "FlashInferFP8ScaledMMLinearKernel"},
      {"12", "sm_80", fp8_tensor_static(), "MarlinFP8ScaledMMLinearKernel", -1, {}, "activation_upgraded"},
      {"13", "sm_80", fp8_tensor_static(), "HummingFP8ScaledMMLinearKernel", -1, kBatchInvariant},
      {"15", "sm_120", fp8_channel_token(), "", 1, all_with_b12x(prefer("b12x"))},
      {"16", "gfx942", fp8_tensor_static(), "ROCmFP8ScaledMMLinearKernel"},
      {"17", "gfx942", fp8_channel_token(), "RowWiseTorchFP8ScaledMMLinearKernel"},
      {"19", "gfx1100", fp8_tensor_static(), "", 7},
      {"20", "xpu", fp8_tensor_static(), "XPUW8A16FP8LinearKernel", -1, {}, "activation_upgraded"},
      {"22_doubtful", "avx512", fp8_channel_token(), "CPUFP8W8A8ScaledMMLinearKernel"},
      {"22_doubtful_without_op", "avx512", fp8_channel_token(), "ChannelWiseTorchFP8ScaledMMLinearKernel", -1,
       assume({{"float8_linear_prepack_cpu", "0"}})},
      {"23", "sm_90", fp8_block_scheme(), "FlashInferFp8DeepGEMMDynamicBlockScaledKernel"},
      {"24", "sm_90", fp8_block_scheme(), "CutlassFp8BlockScaledMMKernel", -1, in(DType::f16)},
      {"26", "sm_90", fp8_block_scheme(), "CutlassFp8BlockScaledMMKernel", -1, assume({{"VLLM_USE_DEEP_GEMM", "0"}})},
      {"27", "sm_100", fp8_block_scheme(), "DeepGemmFp8BlockScaledMMKernel"},
      {"29",
       "sm_90",
       fp8_block_scheme(),
       "FlashInferFp8DeepGEMMDynamicBlockScaledKernel",
       -1,
       {},
       "",
       lin,
       4096,
       4096,
       "fp8",
       "qwen3_5_text"},
      {"29_on_blackwell",
       "sm_100",
       fp8_block_scheme(),
       "CutlassFp8BlockScaledMMKernel",
       -1,
       {},
       "",
       lin,
       4096,
       4096,
       "fp8",
       "qwen3_5_text"},
      {"30", "sm_89", fp8_block_scheme(), "MarlinFP8ScaledMMLinearKernel"},
      {"31", "sm_89", fp8_block_scheme(), "HummingFP8ScaledMMLinearKernel", -1, kBatchInvariant},
      {"32", "sm_89", fp8_block_scheme(), "", 1, prefer("deep_gemm")},
      {"34", "sm_90", fp8_block_scheme(), "BlockWiseTorchFP8ScaledMMLinearKernel", -1, prefer("torch")},
      {"34_on_blackwell", "sm_100", fp8_block_scheme(), "", 1, prefer("torch")},
      {"35", "gfx942", fp8_block_scheme(), "TritonFp8BlockScaledMMKernel"},
      {"37_doubtful", "amx", fp8_block_scheme(), "CPUFp8BlockScaledMMKernel", -1,
       assume({{"float8_linear_prepack_cpu", "0"}})},
      {"38", "sm_80", fp8_weights_only(), "HummingFP8ScaledMMLinearKernel"},
      {"38_disabled", "sm_80", fp8_weights_only(), "MarlinFP8ScaledMMLinearKernel", -1,
       disabled("HummingFP8ScaledMMLinearKernel")},
      {"39", "gfx942", fp8_weights_only(), "", 0},
      {"40", "sm_90", uint4b8(), "MacheteLinearKernel"},
      {"42", "sm_90", uint4b8(), "MarlinLinearKernel", -1, {}, "", lin, 4160},
      {"43", "sm_80", uint4b8(), "TritonW4A16LinearKernel", -1, disabled("MarlinLinearKernel")},
      {"44", "sm_75", uint4_with_zero_points(64), "MarlinLinearKernel", -1, in(DType::f16)},
      {"46_fp16", "sm_70", uint4b8(), "ExllamaLinearKernel", -1, in(DType::f16)},
      {"46_bf16", "sm_70", uint4b8(), "TritonW4A16LinearKernel"},
      {"47", "sm_80", offset_codes(Format::uint3, 128), "HummingLinearKernel"},
      {"47_without_humming", "sm_80", offset_codes(Format::uint3, 128), "", 7, without({"humming"})},
      {"51", "sm_80", uint4b8(), "", 1, prefer("machete")},
      {"52", "gfx1100", uint4b8(), "RDNA3W4A16LinearKernel"},
      {"52_zero_points", "gfx1100", uint4_with_zero_points(), "RDNAHybridW4A16LinearKernel"},
      {"54_int4", "xpu", int4_w4a8(32), "XPUW4A8IntLinearKernel"},
      {"54_uint4b8", "xpu", uint4b8(32), "XPUwNa16LinearKernel"},
      {"55", "avx512", int4_w4a8(32), "Dynamic4bitLinearKernel"},
      {"57_volta", "sm_70", mxfp8_scheme(), "EmulationMxfp8LinearKernel"},
      {"57_ampere", "sm_80", mxfp8_scheme(), "MarlinMxfp8LinearKernel"},
      {"57_hopper", "sm_90", mxfp8_scheme(), "MarlinMxfp8LinearKernel"},
      {"59", "sm_120", mxfp8_scheme(), "", 1, prefer("flashinfer_trtllm")},
      {"61_doubtful", "sm_90", mxfp8_scheme(), "EmulationMxfp8LinearKernel", -1, assume({{"bmm_batch_size", "8"}})},
      {"61_on_blackwell", "sm_100", mxfp8_scheme(), "DeepGemmMxfp8BmmLinearKernel", -1,
       assume({{"bmm_batch_size", "8"}})},
      {"62_100", "sm_100", nvfp4_scheme(), "FlashInferCuteDslNvFp4LinearKernel"},
      {"62_110", "sm_110", nvfp4_scheme(), "FlashInferCutlassNvFp4LinearKernel"},
      {"62_120", "sm_120", nvfp4_scheme(), "FlashInferCutlassNvFp4LinearKernel"},
      {"63_75", "sm_75", nvfp4_scheme(), "MarlinNvFp4LinearKernel", -1, {}, "activation_upgraded"},
      {"63_90", "sm_90", nvfp4_scheme(), "MarlinNvFp4LinearKernel", -1, {}, "activation_upgraded"},
      {"65_doubtful", "sm_90", nvfp4_scheme(), "FlashInferTrtllmNvFp4LinearKernel", -1,
       disabled("MarlinNvFp4LinearKernel")},
      {"66", "gfx950", nvfp4_scheme(), "EmulationNvFp4LinearKernel"},
      {"68", "sm_100", nvfp4_w4a16_scheme(), "FlashInferCuteDslNvFp4W4A16LinearKernel"},
      {"68_older_flashinfer", "sm_100", nvfp4_w4a16_scheme(), "MarlinNvFp4LinearKernel", -1,
       without({"flashinfer.mm_bf16_fp4"})},
      {"71", "sm_90", nvfp4_w4a16_scheme(), "", 1, prefer("flashinfer_cutedsl")},
      {"73", "sm_90", nvfp4_w4a16_scheme(), "MarlinNvFp4LinearKernel", -1, disabled("MarlinNvFp4LinearKernel")},
      {"74", "sm_100", nvfp4_w4a16_scheme(), "", -1, kBatchInvariant},
      {"75", "gfx950", nvfp4_w4a16_scheme(), ""},
      {"76", "sm_80", mx(Format::e2m3, std::nullopt), "HummingMxFp6LinearKernel"},
      {"76_rocm", "gfx950", mx(Format::e3m2, std::nullopt), "EmulationMxfp6LinearKernel"},
      {"78", "sm_100", mx(Format::e2m1, std::nullopt), "MarlinMxFp4LinearKernel"},
      {"79", "sm_90", mx(Format::e2m1, Format::e3m2), "", 5},
      {"81", "xpu", mx(Format::e2m1, std::nullopt), "", 1},
      {"82_mxfp4", "amx", mxfp4_scheme(), "", 0},
      {"82_mxfp6", "amx", mx(Format::e2m3, std::nullopt), "", 0},
      {"82_mxfp8", "amx", mxfp8_scheme(), "", 0},
      {"82_nvfp4", "amx", nvfp4_scheme(), "", 0},
      {"84", "sm_90", fp8_block_scheme(), "TRITON", -1, {}, "", moe},
      {"84_shared_experts", "sm_90", fp8_block_scheme(), "FLASHINFER_CUTLASS", -1, assume({{"expert_parallel", "8"}}),
       "", moe},
  };
  Example four{"4", "sm_80", int8(), "", 1, prefer("humming")};
  four.policy.without = {"humming"};
  examples.push_back(four);
  Example thirty_one{"31_without_humming",           "sm_89", fp8_block_scheme(),
                     "TritonFp8BlockScaledMMKernel", -1,      kBatchInvariant};
  thirty_one.policy.without = {"humming"};
  examples.push_back(thirty_one);
  // Ranks of 96 columns of 1536: inside a scale group.
  Example split{"49", "sm_80", uint4b8(), "HummingLinearKernel"};
  split.k = 1536;
  split.tp = 16;
  examples.push_back(split);
  split.number = "50_doubtful";
  split.policy = in(DType::f16);
  split.kernel = "ExllamaLinearKernel";
  examples.push_back(split);
  return examples;
}

// What the rules say besides the written-down examples.
std::vector<Example> consequences() {
  const auto lin = LayerKind::linear, moe = LayerKind::experts;
  const auto from = [&](Example example, std::string quant_method) {
    example.quant_method = std::move(quant_method);
    return example;
  };
  Policy bf16_only_marlin = prefer("cutlass");
  Policy override_auto = prefer("cutlass");
  override_auto.linear.families[Family::nvfp4_w4a16] = "auto";
  return {
      // An irrelevant backend changes the result: it is not `auto`, so nothing is forced.
      {"irrelevant_backend", "sm_120", nvfp4_w4a16_scheme(), "FlashInferCuteDslNvFp4W4A16LinearKernel", -1,
       prefer("cutlass"), "backend_not_covered"},
      {"no_backend", "sm_120", nvfp4_w4a16_scheme(), "MarlinNvFp4LinearKernel"},
      {"override_of_auto", "sm_120", nvfp4_w4a16_scheme(), "MarlinNvFp4LinearKernel", -1, override_auto},
      {"backend_names_fold", "sm_120", nvfp4_scheme(), "FlashInferB12xNvFp4LinearKernel", -1,
       prefer("FlashInfer-B12x")},
      {"batch_invariant_nvfp4", "sm_120", nvfp4_scheme(), "CutlassNvFp4LinearKernel", -1, kBatchInvariant},
      {"batch_invariant_nvfp4_old_device", "sm_90", nvfp4_scheme(), "EmulationNvFp4LinearKernel", -1, kBatchInvariant,
       "emulation"},
      // compressed-tensors has no W8A8 below 89; other checkpoints have.
      from({"ct_fp8_ampere", "sm_80", fp8_tensor_static(), "HummingFP8ScaledMMLinearKernel"}, "compressed-tensors"),
      from({"fp8_ampere", "sm_80", fp8_tensor_static(), "MarlinFP8ScaledMMLinearKernel"}, "fp8"),
      from({"ct_fp8_xpu", "xpu", fp8_channel_token(), "XPUW8A8FP8LinearKernel", -1, prefer("xpu")},
           "compressed-tensors"),
      // One dynamic scale becomes one per token where CUTLASS has fp8.
      {"dynamic_tensor_scale", "sm_100", fp8_tensor_dynamic(), "CutlassFP8ScaledMMLinearKernel"},
      {"dynamic_tensor_scale_rocm", "gfx942", fp8_tensor_dynamic(), "ROCmFP8ScaledMMLinearKernel"},
      {"cuda_12_3_ada", "sm_89", fp8_channel_token(), "ChannelWiseTorchFP8ScaledMMLinearKernel", -1,
       assume({{"cuda", "12.3"}})},
      {"cuda_12_3_hopper", "sm_90", fp8_channel_token(), "CutlassFP8ScaledMMLinearKernel", -1,
       assume({{"cuda", "12.3"}})},
      {"cuda_12_6_blackwell", "sm_100", fp8_block_scheme(), "MarlinFP8ScaledMMLinearKernel", -1,
       assume({{"cuda", "12.6"}, {"VLLM_USE_DEEP_GEMM", "0"}})},
      {"w4a8_fp8_hopper", "sm_90", int4_w4a8(128, Format::e4m3), "CutlassW4A8LinearKernel"},
      {"w4a8_fp8_elsewhere", "sm_100", int4_w4a8(128, Format::e4m3), "", 7},
      {"w4a8_int8_cuda", "sm_90", int4_w4a8(128), "HummingLinearKernel"},
      {"thin_n", "sm_100", fp8_block_scheme(), "CutlassFp8BlockScaledMMKernel", -1, {}, "", lin, 4096 + 32},
      {"float_linear", "sm_90", float_scheme(), "UnquantizedLinearMethod"},
      {"mxfp4_dynamic_blackwell", "sm_120", mxfp4_scheme(), "FlashInferMxFp4LinearKernel"},
      {"nvfp4_explicit_trtllm", "sm_90", nvfp4_scheme(), "FlashInferTrtllmNvFp4LinearKernel", -1,
       prefer("flashinfer_trtllm")},
      // Experts: orders, moves, and no fallback.
      {"moe_nvfp4_blackwell", "sm_100", nvfp4_scheme(), "FLASHINFER_TRTLLM", -1, {}, "", moe},
      {"moe_nvfp4_consumer", "sm_120", nvfp4_scheme(), "FLASHINFER_CUTLASS", -1, {}, "", moe},
      {"moe_nvfp4_thor", "sm_110", nvfp4_scheme(), "VLLM_CUTLASS", -1, {}, "", moe},
      {"moe_nvfp4_hopper", "sm_90", nvfp4_scheme(), "MARLIN", -1, {}, "activation_upgraded", moe},
      {"moe_nvfp4_explicit_only", "sm_120", nvfp4_scheme(), "B12X", -1,
       experts_prefer("b12x", with({"flashinfer", "b12x"})), "", moe},
      {"moe_nvfp4_clamped", "sm_120", nvfp4_scheme(), "", -1,
       experts_prefer("flashinfer_b12x", assume({{"swiglu_clamp", "1"}})), "", moe},
      {"moe_unknown_for_format", "sm_90", nvfp4_scheme(), "", -1, experts_prefer("deep_gemm"), "", moe},
      {"moe_unsupported", "sm_90", nvfp4_scheme(), "", -1, experts_prefer("flashinfer_trtllm"), "", moe},
      {"moe_float_humming_is_auto", "sm_90", float_scheme(), "TRITON", -1, experts_prefer("humming"), "", moe},
      {"moe_float_marlin", "sm_90", float_scheme(), "", -1, experts_prefer("marlin"), "", moe},
      {"moe_float_blackwell", "sm_100", float_scheme(), "FLASHINFER_TRTLLM", -1, {}, "", moe},
      {"moe_fp8_block_blackwell", "sm_100", fp8_block_scheme(), "FLASHINFER_TRTLLM", -1, {}, "", moe},
      {"moe_fp8_block_ampere", "sm_80", fp8_block_scheme(), "MARLIN", -1, {}, "", moe},
      {"moe_deep_gemm_stated", "sm_90", fp8_block_scheme(), "DEEPGEMM", -1, assume({{"VLLM_USE_DEEP_GEMM", "1"}}), "",
       moe},
      {"moe_deep_gemm_stated_unsupported", "sm_80", fp8_block_scheme(), "", -1, assume({{"VLLM_USE_DEEP_GEMM", "1"}}),
       "", moe},
      {"moe_deep_gemm_off", "sm_90", fp8_block_scheme(), "TRITON", -1, assume({{"VLLM_MOE_USE_DEEP_GEMM", "0"}}), "",
       moe},
      {"moe_aiter_stated", "gfx942", fp8_block_scheme(), "AITER", -1, kAiter, "", moe},
      {"moe_rocm", "gfx942", fp8_block_scheme(), "TRITON", -1, {}, "", moe},
      {"moe_int4", "sm_90", uint4b8(32), "MARLIN", -1, {}, "", moe},
      {"moe_int8", "sm_90", int8(), "TRITON", -1, {}, "", moe},
      {"moe_mxfp4_blackwell", "sm_100", mx(Format::e2m1, std::nullopt), "TRTLLM_BF16", -1, {}, "", moe},
      {"moe_mxfp4_consumer", "sm_120", mx(Format::e2m1, std::nullopt), "FI_CUTLASS_BF16", -1, {}, "", moe},
      {"moe_mxfp4_ampere", "sm_80", mx(Format::e2m1, std::nullopt), "MARLIN", -1, {}, "", moe},
      {"moe_deepseek_v4_blackwell",
       "sm_100",
       mx(Format::e2m1, std::nullopt),
       "TRTLLM_MXFP8",
       -1,
       {},
       "",
       moe,
       4096,
       4096,
       "fp8",
       "deepseek_v4"},
      {"moe_deepseek_v4_hopper",
       "sm_90",
       mx(Format::e2m1, std::nullopt),
       "DEEPGEMM",
       -1,
       {},
       "",
       moe,
       4096,
       4096,
       "fp8",
       "deepseek_v4"},
      {"moe_deepseek_v4_rocm",
       "gfx950",
       mx(Format::e2m1, std::nullopt),
       "EMULATION",
       -1,
       {},
       "emulation",
       moe,
       4096,
       4096,
       "fp8",
       "deepseek_v4"},
      {"moe_mxfp8_hopper", "sm_90", mxfp8_scheme(), "DEEPGEMM", -1, {}, "", moe},
  };
}

Result<Plan> planned(const Example& example, const Registry& registry = vllm_registry()) {
  LayerSpec layer = layer_of(example.tp > 0 ? "model.layers.0.down_proj" : "model.layers.0.proj", example.scheme,
                             example.n, example.k);
  if (example.tp > 0) layer = shard(layer, example.tp);
  layer.kind = example.kind;
  layer.experts = example.kind == LayerKind::experts ? 8 : 0;
  layer.stacked = example.kind == LayerKind::experts;
  ModelLayers model;
  model.quant_method = example.quant_method;
  model.model_type = example.model_type;
  PlanRequest request;
  request.model = &model;
  request.layers = {std::move(layer)};
  request.device = device_named(example.device);
  request.policy = example.policy;
  request.policy.tp = example.tp;
  request.registry = &registry;
  return make_plan(std::move(request));
}

// Candidates whose own reasons an error lists: those that the request's backend filter does not hide.
int reasons_in(const ErrorInfo& error) {
  int reasons = 0;
  for (const std::string& line : error.details)
    if (line.starts_with("  ") && !mentions(line, "asks for another backend") && !mentions(line, "is registered for"))
      ++reasons;
  return reasons;
}

class VllmExample : public testing::TestWithParam<Example> {};

TEST_P(VllmExample, IsWhatVllmChooses) {
  const Example& example = GetParam();
  const Result<Plan> plan = planned(example);
  if (example.kernel.empty()) {
    ASSERT_FALSE(plan.ok()) << "chose " << served(*plan);
    EXPECT_EQ(plan.error().code, ErrorCode::no_kernel) << plan.error().message();
    if (example.reasons >= 0) {
      EXPECT_EQ(reasons_in(plan.error()), example.reasons) << join(plan.error().details, "\n");
    }
    return;
  }
  ASSERT_TRUE(plan.ok()) << plan.error().message() << "\n" << join(plan.error().details, "\n");
  EXPECT_EQ(served(*plan), example.kernel + " 1..");
  if (!example.warning.empty()) {
    EXPECT_EQ(warning(*plan, example.warning).layers, 1);
  }
}

std::string name_of(const testing::TestParamInfo<Example>& info) { return info.param.number; }
INSTANTIATE_TEST_SUITE_P(Worked, VllmExample, testing::ValuesIn(worked_examples()), name_of);
INSTANTIATE_TEST_SUITE_P(Consequence, VllmExample, testing::ValuesIn(consequences()), name_of);

// Example 66: nothing stood before the emulation, so nothing was lost.
TEST(Vllm, EmulationThatStandsAloneIsNoNews) {
  EXPECT_TRUE(codes(planned({"", "gfx950", nvfp4_scheme(), ""}).value()).empty());
  EXPECT_EQ(codes(planned({"", "sm_70", mxfp8_scheme(), ""}).value()),
            (std::vector<std::string>{"emulation", "activation_upgraded"}));
}

TEST(Vllm, ACandidateIsRefusedAtTheStageThatCanChangeIt) {
  const auto verdict_on = [](const Example& example, std::string_view kernel) {
    return verdict(planned(example).value(), kernel);
  };
  Verdict v = verdict_on({"", "sm_120", nvfp4_scheme(), ""}, "FlashInferCuteDslNvFp4LinearKernel");
  EXPECT_EQ(v.stage, Stage::device);
  EXPECT_EQ(v.field, "capabilities");
  EXPECT_EQ(v.found, "120");
  EXPECT_EQ(v.wanted, "10x");

  v = verdict_on({"", "sm_120", nvfp4_scheme(), ""}, "B12xNvFp4LinearKernel");
  EXPECT_EQ(v.stage, Stage::build);
  EXPECT_EQ(v.wanted, "b12x");

  v = verdict_on({"", "sm_90", fp8_block_scheme(), "", -1, assume({{"VLLM_USE_DEEP_GEMM", "0"}})},
                 "DeepGemmFp8BlockScaledMMKernel");
  EXPECT_EQ(v.stage, Stage::policy);
  EXPECT_EQ(v.field, "VLLM_USE_DEEP_GEMM");

  v = verdict_on({"", "sm_80", uint4b8(), "", -1, disabled("MarlinLinearKernel")}, "MarlinLinearKernel");
  EXPECT_EQ(v.stage, Stage::policy);
  EXPECT_EQ(v.field, "VLLM_DISABLED_KERNELS");

  v = verdict_on({"", "sm_90", uint4b8(), "", -1, {}, "", LayerKind::linear, 4160}, "MacheteLinearKernel");
  EXPECT_EQ(v.stage, Stage::layer);
  EXPECT_EQ(v.field, "n");
  EXPECT_EQ(v.wanted, "a multiple of 128");
}

TEST(Vllm, NothingOfItRunsHere) {
  Example example{"", "avx2", int8(), ""};
  LayerSpec layer = layer_of("l", int8(), 64, 64);
  PlanRequest request;
  request.layers = {layer};
  request.device = here();
  request.registry = &vllm_registry();
  const Plan plan = make_plan(std::move(request)).value();
  EXPECT_FALSE(plan.layers[0].decision->runnable);
  EXPECT_EQ(plan.registry, "vllm");
}

TEST(Vllm, TheFamilyIsTheListsKey) {
  const auto family = [](const Example& example) { return planned(example).value().layers[0].layer.family; };
  EXPECT_EQ(family({"", "sm_90", int4_w4a8(128), ""}), Family::mixed_precision);
  Example ampere{"", "sm_80", fp8_channel_token(), ""};
  EXPECT_EQ(family(ampere), Family::fp8_w8a8);
  ampere.quant_method = "compressed-tensors";
  EXPECT_EQ(family(ampere), Family::w8a16_fp8);
}

TEST(Vllm, NamesItDoesNotKnowAreUsageErrors) {
  const auto error_of = [](Policy policy) { return planned({"", "sm_90", int8(), "", -1, policy}).error(); };
  ErrorInfo error = error_of(with({"flashinfr"}));
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_TRUE(mentions(error.message(), "--with: found 'flashinfr'")) << error.message();
  EXPECT_TRUE(mentions(error.hint, "flashinfer"));
  error = error_of(without({"pytorch"}));
  EXPECT_EQ(error.subject, "--without");
  error = error_of(assume({{"VLLM_USE_DEEPGEMM", "1"}}));
  EXPECT_EQ(error.subject, "--assume");
  EXPECT_TRUE(mentions(error.hint, "VLLM_USE_DEEP_GEMM")) << error.hint;
  error = error_of(assume({{"VLLM_USE_DEEP_GEMM", "maybe"}}));
  EXPECT_EQ(error.wanted, "0 or 1");
  error = error_of(assume({{"cuda", "twelve"}}));
  EXPECT_EQ(error.wanted, "a version such as 12.4");
  error = error_of(assume({{"cuda", "12.4"}, {"cuda", "12.8"}}));
  EXPECT_EQ(error.wanted, "one value");
}

// vLLM compares names in its disable list exactly and ignores what it does not know; the plan says so.
TEST(Vllm, DisabledNamesThatNoKernelHasAreToldAsUnused) {
  const Plan plan = planned({"", "sm_90", int8(), "", -1, disabled("CutlassInt8ScaledMMLinearKernel, Marlin")}).value();
  EXPECT_EQ(served(plan), "TritonInt8ScaledMMLinearKernel 1..");
  EXPECT_EQ(plan.unused, std::vector<std::string>{"VLLM_DISABLED_KERNELS= Marlin"});
}

TEST(Vllm, AssumptionsAreInTheHash) {
  const Example plain{"", "sm_90", int8(), ""};
  const std::string hash = planned(plain).value().hash;
  EXPECT_EQ(planned(plain).value().hash, hash);
  Example other = plain;
  other.policy = assume({{"cuda", "12.8"}});
  EXPECT_NE(planned(other).value().hash, hash);
  other.policy = without({"humming"});
  EXPECT_NE(planned(other).value().hash, hash);
}

TEST(Vllm, WhatItLacksIsNotPutDownToThisBuild) {
  const Plan plan = planned({"", "sm_80", int8(), "", -1, prefer("marlin")}).value();
  EXPECT_EQ(plan.layers[0].decision->fallback->reason,
            "marlin has no kernel for int8_w8a8 on cuda in the registry vllm");
}

// --strict refuses what vLLM only warns about, and our own --disable reaches kernels that vLLM forces.
TEST(Vllm, OurOwnPoliciesHoldBesideItsRules) {
  Example example{"", "sm_80", int8(), "", -1, strictly(prefer("marlin"))};
  EXPECT_EQ(planned(example).error().code, ErrorCode::fallback_refused);
  Example forced{"", "sm_90", nvfp4_w4a16_scheme(), ""};
  forced.policy.disable = {"MarlinNvFp4LinearKernel"};
  EXPECT_EQ(planned(forced).error().code, ErrorCode::no_kernel);
}

// Libraries and switches of another engine say nothing about our own kernels.
TEST(Vllm, AssumptionsTouchNothingInOurOwnRegistry) {
  StubRegistry stubs;
  stubs.add(Family::int8_w8a8, "only", "native");
  Policy policy = with({"flashinfer"}, assume({{"VLLM_USE_DEEP_GEMM", "0"}}));
  const Plan plan = plan_of(stubs, {layer_of("l", int8(), 64, 64)}, policy).value();
  EXPECT_EQ(plan.unused, (std::vector<std::string>{"--assume VLLM_USE_DEEP_GEMM", "--with flashinfer"}));
  EXPECT_FALSE(plan_of(stubs, {layer_of("l", int8(), 64, 64)}, with({"flashinfr"})).ok());
}

// ---- the data itself ------------------------------------------------------------------------------------------------

TEST(Vllm, EveryListedKernelIsReachedOrExplained) {
  const Registry& registry = vllm_registry();
  std::set<std::string_view> kernels;
  for (const KernelList& list : registry.lists)
    for (const ListEntry& line : list.entries) {
      EXPECT_EQ(line.kernel->platform, list.platform) << line.kernel->name;
      EXPECT_FALSE(line.kernel->source.empty()) << line.kernel->name;
      kernels.insert(line.kernel->name);
    }
  EXPECT_EQ(kernels.size(), 79u + 1 + 30) << "79 linear kernels, the float one, and the experts'";
}

}  // namespace
}  // namespace gearshift
