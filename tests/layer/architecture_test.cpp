// Names and shapes of the layers of known architectures from a config alone, worked out by hand from the public model
// definitions; absurd configs; and the tensors that schemes are expected to store.
#include "layer/fused_layers.h"
#include "layer/table.h"

namespace gearshift::test {
namespace {

// Opens a config.json that stands alone in its directory.
Result<Checkpoint> open_config(const std::string& config) {
  static std::atomic<int> count{0};
  const std::filesystem::path dir =
      std::filesystem::temp_directory_path() /
      ("gearshift_architecture_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "config.json") << config;
  Result<Checkpoint> checkpoint = Checkpoint::open(dir.string());
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
  return checkpoint;
}

Result<ModelLayers> read_config(const std::string& config, bool allow_unknown = false) {
  const Result<Checkpoint> checkpoint = open_config(config);
  if (!checkpoint.ok()) return checkpoint.error();
  return read_layers(*checkpoint, allow_unknown);
}

std::string config_of(const std::string& architecture, const std::string& keys, const std::string& quantization = "") {
  std::string text = R"({"architectures":[")" + architecture + R"("],"dtype":"bfloat16",)" + keys;
  if (!quantization.empty()) text += R"(,"quantization_config":)" + quantization;
  return text + "}";
}

// "q_proj 64x32, k_proj+bias 16x32 ..." of the layers below `prefix`, in the order of the plan.
std::string shapes(const Result<ModelLayers>& model, const std::string& prefix) {
  if (!model.ok()) return "error: " + model.error().message();
  std::string text;
  for (const LayerSpec& layer : model->layers) {
    if (layer.name.compare(0, prefix.size(), prefix) != 0) continue;
    if (!text.empty()) text += ", ";
    text += layer.name.substr(prefix.size()) + (layer.bias ? "+bias " : " ");
    if (layer.stacked) text += std::to_string(layer.experts) + "x";
    text += std::to_string(layer.n) + "x" + std::to_string(layer.k);
  }
  return text;
}
size_t count_of(const Result<ModelLayers>& model) { return model.ok() ? model->layers.size() : 0; }

const std::string kSmall =
    R"("hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100)";

TEST(Architecture, Llama) {
  const auto model = read_config(config_of("LlamaForCausalLM", kSmall));
  EXPECT_EQ(shapes(model, "model.layers.1."),
            "mlp.down_proj 32x48, mlp.gate_proj 48x32, mlp.up_proj 48x32, self_attn.k_proj 16x32, "
            "self_attn.o_proj 32x32, self_attn.q_proj 32x32, self_attn.v_proj 16x32");
  EXPECT_EQ(shapes(model, "lm_head"), " 100x32");
  EXPECT_EQ(count_of(model), 15u);
  EXPECT_EQ(model->skipped, Names{"model.embed_tokens"});
  EXPECT_EQ(model->architecture, "LlamaForCausalLM");
}

TEST(Architecture, LlamaBiasesAndTiedHead) {
  const auto model = read_config(
      config_of("LlamaForCausalLM",
                kSmall + R"(,"attention_bias":true,"mlp_bias":true,"tie_word_embeddings":true,"head_dim":16)"));
  EXPECT_EQ(shapes(model, "model.layers.0."),
            "mlp.down_proj+bias 32x48, mlp.gate_proj+bias 48x32, mlp.up_proj+bias 48x32, self_attn.k_proj+bias 32x32, "
            "self_attn.o_proj+bias 32x64, self_attn.q_proj+bias 64x32, self_attn.v_proj+bias 32x32");
  EXPECT_EQ(find(model->layers, "lm_head")->modules[0].tensors[0].name, "model.embed_tokens.weight");
}

TEST(Architecture, MistralAndItsWrapper) {
  EXPECT_EQ(shapes(read_config(config_of("MistralForCausalLM", kSmall + R"(,"head_dim":null)")), "model.layers.0.self"),
            "_attn.k_proj 16x32, _attn.o_proj 32x32, _attn.q_proj 32x32, _attn.v_proj 16x32");
  const auto model =
      read_config(config_of("Mistral3ForConditionalGeneration",
                            R"("spatial_merge_size":2,"text_config":{)" + kSmall +
                                R"(},"vision_config":{"hidden_size":8,"intermediate_size":12,"num_hidden_layers":1})"));
  EXPECT_EQ(shapes(model, "language_model.model.layers.0.mlp."), "down_proj 32x48, gate_proj 48x32, up_proj 48x32");
  EXPECT_EQ(shapes(model, "language_model.lm_head"), " 100x32");
  EXPECT_EQ(shapes(model, "multi_modal_projector."), "linear_1 32x8, linear_2 32x32, patch_merger.merging_layer 8x32");
  EXPECT_EQ(shapes(model, "vision_tower.transformer.layers.0."),
            "attention.k_proj 8x8, attention.o_proj 8x8, attention.q_proj 8x8, attention.v_proj 8x8, "
            "feed_forward.down_proj 8x12, feed_forward.gate_proj 12x8, feed_forward.up_proj 12x8");
}

TEST(Architecture, Qwen2HasBiasesOnInputsOnly) {
  EXPECT_EQ(shapes(read_config(config_of("Qwen2ForCausalLM", kSmall)), "model.layers.0.self_attn."),
            "k_proj+bias 16x32, o_proj 32x32, q_proj+bias 32x32, v_proj+bias 16x32");
}

TEST(Architecture, Qwen3HasItsOwnHeadSize) {
  EXPECT_EQ(shapes(read_config(config_of("Qwen3ForCausalLM", kSmall)), "model.layers.0.self_attn."),
            "k_proj 256x32, o_proj 32x512, q_proj 512x32, v_proj 256x32");
}

TEST(Architecture, Phi3StoresFusedProjections) {
  EXPECT_EQ(shapes(read_config(config_of("Phi3ForCausalLM", kSmall)), "model.layers.1."),
            "mlp.down_proj 32x48, mlp.gate_up_proj 96x32, self_attn.o_proj 32x32, self_attn.qkv_proj 64x32");
}

TEST(Architecture, Gemma3FillsInDefaults) {
  const std::string sizes = R"("hidden_size":32,"intermediate_size":48,"num_hidden_layers":1)";
  const auto text = read_config(config_of("Gemma3ForCausalLM", sizes));
  EXPECT_EQ(shapes(text, "model.layers.0.self_attn."),
            "k_proj 1024x32, o_proj 32x2048, q_proj 2048x32, v_proj 1024x32");
  EXPECT_EQ(shapes(text, "lm_head"), " 262208x32");
  const auto wrapped =
      read_config(config_of("Gemma3ForConditionalGeneration",
                            R"("text_config":{)" + sizes +
                                R"(},"vision_config":{"hidden_size":8,"intermediate_size":12,"num_hidden_layers":1})"));
  EXPECT_EQ(shapes(wrapped, "language_model.model.layers.0.mlp."), "down_proj 32x48, gate_proj 48x32, up_proj 48x32");
  EXPECT_EQ(shapes(wrapped, "vision_tower.vision_model.encoder.layers.0.mlp."), "fc1+bias 12x8, fc2+bias 8x12");
}

constexpr const char* kGemma4 =
    R"("text_config":{"hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"global_head_dim":16,"num_global_key_value_heads":1,"attention_k_eq_v":true,"layer_types":["sliding_attention","full_attention"],"vocab_size":100},"tie_word_embeddings":true)";

TEST(Architecture, Gemma4HasTwoKindsOfAttention) {
  const auto model = read_config(config_of(
      "Gemma4ForConditionalGeneration",
      std::string(kGemma4) +
          R"(,"vision_config":{"hidden_size":8,"intermediate_size":12,"num_hidden_layers":1,"patch_size":2})"));
  EXPECT_EQ(shapes(model, "model.language_model.layers.0.self_attn."),
            "k_proj 16x32, o_proj 32x32, q_proj 32x32, v_proj 16x32");
  EXPECT_EQ(shapes(model, "model.language_model.layers.1."),
            "mlp.down_proj 32x48, mlp.gate_proj 48x32, mlp.up_proj 48x32, self_attn.k_proj 16x32, "
            "self_attn.o_proj 32x64, self_attn.q_proj 64x32");
  EXPECT_EQ(shapes(model, "lm_head"), " 100x32");
  EXPECT_EQ(shapes(model, "model.vision_tower."),
            "encoder.layers.0.mlp.down_proj.linear 8x12, encoder.layers.0.mlp.gate_proj.linear 12x8, "
            "encoder.layers.0.mlp.up_proj.linear 12x8, encoder.layers.0.self_attn.k_proj.linear 8x8, "
            "encoder.layers.0.self_attn.o_proj.linear 8x8, encoder.layers.0.self_attn.q_proj.linear 8x8, "
            "encoder.layers.0.self_attn.v_proj.linear 8x8, patch_embedder.input_proj 8x12");
  EXPECT_TRUE(fails(read_config(config_of("Gemma4ForConditionalGeneration",
                                          std::string(kGemma4) + R"(,"audio_config":{"hidden_size":8})")),
                    ErrorCode::unsupported_scheme, {"audio_config"}));
}

TEST(Architecture, Qwen3MoeMixesDenseAndSparseLayers) {
  const auto model = read_config(config_of(
      "Qwen3MoeForCausalLM",
      R"("hidden_size":32,"intermediate_size":48,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100,"num_experts":2,"moe_intermediate_size":16,"decoder_sparse_step":2,"mlp_only_layers":[3])"));
  EXPECT_EQ(shapes(model, "model.layers.0.mlp."), "down_proj 32x48, gate_proj 48x32, up_proj 48x32");
  EXPECT_EQ(shapes(model, "model.layers.1.mlp."),
            "experts.0.down_proj 32x16, experts.0.gate_proj 16x32, experts.0.up_proj 16x32, "
            "experts.1.down_proj 32x16, experts.1.gate_proj 16x32, experts.1.up_proj 16x32, gate 2x32");
  EXPECT_EQ(shapes(model, "model.layers.3.mlp."), "down_proj 32x48, gate_proj 48x32, up_proj 48x32");
}

TEST(Architecture, Mixtral) {
  EXPECT_EQ(shapes(read_config(config_of("MixtralForCausalLM", kSmall + R"(,"num_local_experts":1)")),
                   "model.layers.0.block_sparse_moe."),
            "experts.0.w1 48x32, experts.0.w2 32x48, experts.0.w3 48x32, gate 1x32");
}

const std::string kDeepseek =
    R"("hidden_size":32,"intermediate_size":48,"num_hidden_layers":2,"num_attention_heads":4,"vocab_size":100,"kv_lora_rank":8,"qk_nope_head_dim":6,"qk_rope_head_dim":2,"v_head_dim":5,"n_routed_experts":1,"n_shared_experts":2,"moe_intermediate_size":16,"first_k_dense_replace":1,"moe_layer_freq":1,"num_nextn_predict_layers":1)";

TEST(Architecture, DeepseekV3) {
  const auto model = read_config(config_of("DeepseekV3ForCausalLM", kDeepseek + R"(,"q_lora_rank":12)"));
  EXPECT_EQ(shapes(model, "model.layers.0."),
            "mlp.down_proj 32x48, mlp.gate_proj 48x32, mlp.up_proj 48x32, self_attn.kv_a_proj_with_mqa 10x32, "
            "self_attn.kv_b_proj 44x8, self_attn.o_proj 32x20, self_attn.q_a_proj 12x32, self_attn.q_b_proj 32x12");
  const std::string sparse =
      "experts.0.down_proj 32x16, experts.0.gate_proj 16x32, experts.0.up_proj 16x32, gate 1x32, "
      "shared_experts.down_proj 32x32, shared_experts.gate_proj 32x32, shared_experts.up_proj 32x32";
  EXPECT_EQ(shapes(model, "model.layers.1.mlp."), sparse);
  // The draft layer behind those that are counted.
  EXPECT_EQ(shapes(model, "model.layers.2.mlp."), sparse);
  EXPECT_EQ(shapes(model, "model.layers.2.eh_proj"), " 32x64");
  EXPECT_EQ(shapes(model, "model.layers.2.shared_head"), ".head 100x32");
  EXPECT_EQ(shapes(model, "model.layers.3."), "");
  // Without a low rank for queries.
  EXPECT_EQ(shapes(read_config(config_of("DeepseekV3ForCausalLM", kDeepseek + R"(,"q_lora_rank":null)")),
                   "model.layers.0.self_attn.q"),
            "_proj 32x32");
}

TEST(Architecture, KimiK25IsDeepseekWithAnotherTower) {
  const auto model = read_config(config_of(
      "KimiK25ForConditionalGeneration",
      R"("text_config":{)" + kDeepseek +
          R"(,"q_lora_rank":12},"vision_config":{"vt_hidden_size":8,"vt_intermediate_size":12,"vt_num_hidden_layers":1,"merge_kernel_size":[2,2]})"));
  EXPECT_EQ(shapes(model, "language_model.model.layers.0.self_attn."),
            "kv_a_proj_with_mqa 10x32, kv_b_proj 44x8, o_proj 32x20, q_a_proj 12x32, q_b_proj 32x12");
  EXPECT_EQ(shapes(model, "language_model.model.layers.2.eh_proj"), " 32x64");
  EXPECT_EQ(shapes(model, "language_model.lm_head"), " 100x32");
  EXPECT_EQ(shapes(model, "vision_tower.encoder.blocks.0."),
            "mlp.fc0+bias 12x8, mlp.fc1+bias 8x12, wo+bias 8x8, wqkv+bias 24x8");
  EXPECT_EQ(shapes(model, "mm_projector."), "proj.0+bias 32x32, proj.2+bias 32x32");
}

TEST(Architecture, Glm4Moe) {
  const auto model = read_config(config_of(
      "Glm4MoeForCausalLM",
      kSmall +
          R"(,"head_dim":16,"attention_bias":true,"n_routed_experts":1,"n_shared_experts":1,"moe_intermediate_size":16,"first_k_dense_replace":1,"num_nextn_predict_layers":1)"));
  EXPECT_EQ(shapes(model, "model.layers.0."),
            "mlp.down_proj 32x48, mlp.gate_proj 48x32, mlp.up_proj 48x32, self_attn.k_proj+bias 32x32, "
            "self_attn.o_proj 32x64, self_attn.q_proj+bias 64x32, self_attn.v_proj+bias 32x32");
  EXPECT_EQ(shapes(model, "model.layers.1.mlp.shared_experts."), "down_proj 32x16, gate_proj 16x32, up_proj 16x32");
  EXPECT_EQ(shapes(model, "model.layers.2.eh_proj"), " 32x64");
}

const std::string kGptOss =
    R"("hidden_size":64,"intermediate_size":32,"num_hidden_layers":1,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100,"num_local_experts":3,"head_dim":64)";

TEST(Architecture, GptOssStacksItsExperts) {
  const auto plain = read_config(config_of("GptOssForCausalLM", kGptOss));
  EXPECT_EQ(shapes(plain, "model.layers.0."),
            "mlp.experts.down_proj+bias 3x64x32, mlp.experts.gate_up_proj+bias 3x64x64, mlp.router+bias 3x64, "
            "self_attn.k_proj+bias 128x64, self_attn.o_proj+bias 64x256, self_attn.q_proj+bias 256x64, "
            "self_attn.v_proj+bias 128x64");
  const auto quantized = read_config(
      config_of("GptOssForCausalLM", kGptOss,
                R"({"quant_method":"mxfp4","modules_to_not_convert":["model.layers.*.self_attn","lm_head"]})"));
  EXPECT_EQ(shapes(quantized, "model.layers.0.mlp.experts."), "down_proj+bias 3x64x32, gate_up_proj+bias 3x64x64");
  EXPECT_EQ(said(quantized, "model.layers.0.mlp.experts.down_proj"), "mxfp4 64x32");
  EXPECT_EQ(said(quantized, "model.layers.0.self_attn.q_proj"), "bf16 256x64");
  const LayerSpec* stack = find(quantized->layers, "model.layers.0.mlp.experts.gate_up_proj");
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->row_order, RowOrder::interleaved);
  EXPECT_EQ(stack->modules[0].tensors[0].name, "model.layers.0.mlp.experts.gate_up_proj_blocks");
}

const std::string kQwenNext =
    R"("hidden_size":32,"intermediate_size":48,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":8,"vocab_size":100,"linear_num_key_heads":2,"linear_num_value_heads":4,"linear_key_head_dim":3,"linear_value_head_dim":5)";
const std::string kQwenExperts = R"(,"num_experts":2,"moe_intermediate_size":16,"shared_expert_intermediate_size":24)";

TEST(Architecture, Qwen3Next) {
  const auto model = read_config(config_of("Qwen3NextForCausalLM", kQwenNext + kQwenExperts));
  EXPECT_EQ(shapes(model, "model.layers.0.linear_attn."), "in_proj_ba 8x32, in_proj_qkvz 52x32, out_proj 32x20");
  EXPECT_EQ(shapes(model, "model.layers.3.self_attn."), "k_proj 16x32, o_proj 32x32, q_proj 64x32, v_proj 16x32");
  EXPECT_EQ(shapes(model, "model.layers.3.mlp.shared"),
            "_expert.down_proj 32x24, _expert.gate_proj 24x32, _expert.up_proj 24x32, _expert_gate 1x32");
  EXPECT_EQ(shapes(model, "model.layers.3.mlp.experts.1."), "down_proj 32x16, gate_proj 16x32, up_proj 16x32");
}

TEST(Architecture, Qwen3_5DenseWithDraftAndTower) {
  const auto model = read_config(config_of(
      "Qwen3_5ForConditionalGeneration",
      R"("text_config":{)" + kQwenNext +
          R"(,"layer_types":["full_attention","linear_attention","linear_attention","linear_attention"],"mtp_num_hidden_layers":1},"vision_config":{"depth":1,"hidden_size":8,"intermediate_size":12,"out_hidden_size":32,"spatial_merge_size":2})"));
  EXPECT_EQ(shapes(model, "model.language_model.layers.0.self_attn."),
            "k_proj 16x32, o_proj 32x32, q_proj 64x32, v_proj 16x32");
  EXPECT_EQ(shapes(model, "model.language_model.layers.1.linear_attn."),
            "in_proj_a 4x32, in_proj_b 4x32, in_proj_qkv 32x32, in_proj_z 20x32, out_proj 32x20");
  EXPECT_EQ(shapes(model, "mtp."),
            "fc 32x64, layers.0.mlp.down_proj 32x48, layers.0.mlp.gate_proj 48x32, layers.0.mlp.up_proj 48x32, "
            "layers.0.self_attn.k_proj 16x32, layers.0.self_attn.o_proj 32x32, layers.0.self_attn.q_proj 64x32, "
            "layers.0.self_attn.v_proj 16x32");
  EXPECT_EQ(shapes(model, "model.visual."),
            "blocks.0.attn.proj+bias 8x8, blocks.0.attn.qkv+bias 24x8, blocks.0.mlp.linear_fc1+bias 12x8, "
            "blocks.0.mlp.linear_fc2+bias 8x12, merger.linear_fc1+bias 32x32, merger.linear_fc2+bias 32x32");
  EXPECT_EQ(shapes(model, "lm_head"), " 100x32");
}

TEST(Architecture, Qwen3_5MoeStacksUntilQuantized) {
  const std::string keys = R"("text_config":{)" + kQwenNext + kQwenExperts + "}";
  EXPECT_EQ(shapes(read_config(config_of("Qwen3_5MoeForConditionalGeneration", keys)),
                   "model.language_model.layers.0.mlp.experts."),
            "down_proj 2x32x16, gate_up_proj 2x32x32");
  EXPECT_EQ(shapes(read_config(config_of("Qwen3_5MoeForConditionalGeneration", keys,
                                         R"({"quant_method":"fp8","weight_block_size":[16,16]})")),
                   "model.language_model.layers.0.mlp.experts.0."),
            "down_proj 32x16, gate_proj 16x32, up_proj 16x32");
}

TEST(Architecture, NemotronH) {
  const auto model = read_config(config_of(
      "NemotronHForCausalLM",
      R"("hidden_size":32,"intermediate_size":48,"num_hidden_layers":4,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":100,"hybrid_override_pattern":"M*-E","mamba_num_heads":6,"mamba_head_dim":5,"n_groups":2,"ssm_state_size":7,"n_routed_experts":1,"n_shared_experts":1,"moe_intermediate_size":16,"moe_shared_expert_intermediate_size":24)"));
  EXPECT_EQ(shapes(model, "backbone.layers.0.mixer."), "in_proj 94x32, out_proj 32x30");
  EXPECT_EQ(shapes(model, "backbone.layers.1.mixer."), "k_proj 32x32, o_proj 32x64, q_proj 64x32, v_proj 32x32");
  EXPECT_EQ(shapes(model, "backbone.layers.2.mixer."), "down_proj 32x48, up_proj 48x32");
  EXPECT_EQ(shapes(model, "backbone.layers.3.mixer."),
            "experts.0.down_proj 32x16, experts.0.up_proj 16x32, gate 1x32, shared_experts.down_proj 32x24, "
            "shared_experts.up_proj 24x32");
  EXPECT_EQ(model->skipped, Names{"backbone.embeddings"});
}

// ---- schemes ----

struct SchemeCase {
  std::string name, quantization, q_proj, lm_head;
};
std::ostream& operator<<(std::ostream& out, const SchemeCase& c) { return out << c.name; }

class ConfigScheme : public ::testing::TestWithParam<SchemeCase> {};

TEST_P(ConfigScheme, DecidesByItsRules) {
  const auto model = read_config(config_of(
      "LlamaForCausalLM",
      R"("hidden_size":128,"intermediate_size":256,"num_hidden_layers":1,"num_attention_heads":2,"vocab_size":512)",
      GetParam().quantization));
  EXPECT_EQ(said(model, "model.layers.0.self_attn.q_proj"), GetParam().q_proj + " 128x128");
  EXPECT_EQ(said(model, "model.layers.0.mlp.down_proj"), GetParam().q_proj + " 128x256");
  EXPECT_EQ(said(model, "lm_head"), GetParam().lm_head + " 512x128");
}

std::string ct(const std::string& group, const std::string& ignore = R"(["lm_head"])") {
  return R"({"quant_method":"compressed-tensors","config_groups":{"group_0":)" + group + R"(},"ignore":)" + ignore +
         "}";
}
std::string ct_weights(const std::string& weights, const std::string& format, const std::string& input = "null") {
  return ct(R"({"targets":["Linear"],"format":")" + format + R"(","weights":)" + weights + R"(,"input_activations":)" +
            input + "}");
}

INSTANTIATE_TEST_SUITE_P(
    All, ConfigScheme,
    ::testing::Values(
        SchemeCase{"ct nvfp4", ct(nvfp4_group(R"(["Linear"])")), "nvfp4_w4a4", "bf16"},
        SchemeCase{"ct nvfp4 with head", ct(nvfp4_group(R"(["Linear"])"), "[]"), "nvfp4_w4a4", "nvfp4_w4a4"},
        SchemeCase{"ct fp8", ct(fp8_group(R"(["Linear"])")), "fp8_w8a8", "bf16"},
        SchemeCase{"ct int4",
                   ct_weights(R"({"num_bits":4,"type":"int","strategy":"group","group_size":32})", "pack-quantized"),
                   "mixed_precision", "bf16"},
        SchemeCase{"ct int4 asymmetric",
                   ct_weights(R"({"num_bits":4,"type":"int","symmetric":false,"strategy":"group","group_size":32})",
                              "pack-quantized"),
                   "mixed_precision", "bf16"},
        SchemeCase{"ct int4 act-order",
                   ct_weights(R"({"num_bits":4,"type":"int","strategy":"group","group_size":32,"actorder":"group"})",
                              "pack-quantized"),
                   "mixed_precision", "bf16"},
        SchemeCase{"ct int8 dynamic",
                   ct_weights(R"({"num_bits":8,"type":"int","strategy":"channel"})", "int-quantized",
                              R"({"num_bits":8,"type":"int","strategy":"token","dynamic":true})"),
                   "int8_w8a8", "bf16"},
        SchemeCase{"ct int8 static asymmetric",
                   ct_weights(R"({"num_bits":8,"type":"int","strategy":"channel"})", "int-quantized",
                              R"({"num_bits":8,"type":"int","strategy":"tensor","symmetric":false})"),
                   "int8_w8a8", "bf16"},
        SchemeCase{
            "ct mxfp4",
            ct_weights(R"({"num_bits":4,"type":"float","strategy":"group","group_size":32})", "mxfp4-pack-quantized"),
            "mxfp4", "bf16"},
        SchemeCase{"ct mxfp8",
                   ct_weights(R"({"num_bits":8,"type":"float","strategy":"group","group_size":32})", "mxfp8-quantized"),
                   "mxfp8", "bf16"},
        SchemeCase{"modelopt nvfp4", R"({"quant_method":"modelopt","quant_algo":"NVFP4","ignore":["lm_head"]})",
                   "nvfp4_w4a4", "bf16"},
        SchemeCase{"modelopt fp8", R"({"quant_method":"modelopt","quant_algo":"FP8","ignore":["lm_head"]})", "fp8_w8a8",
                   "bf16"},
        SchemeCase{"modelopt block", R"({"quant_method":"modelopt","quant_algo":"FP8_PB_WO","ignore":["lm_head"]})",
                   "w8a16_fp8", "bf16"},
        SchemeCase{"modelopt int4", R"({"quant_method":"modelopt","quant_algo":"W4A16_AWQ","ignore":["lm_head"]})",
                   "mixed_precision", "bf16"},
        SchemeCase{"modelopt w4a8", R"({"quant_method":"modelopt","quant_algo":"W4A8_AWQ","ignore":["lm_head"]})",
                   "w4a8", "bf16"},
        SchemeCase{"modelopt mxfp8", R"({"quant_method":"modelopt","quant_algo":"MXFP8","ignore":["lm_head"]})",
                   "mxfp8", "bf16"},
        SchemeCase{"fp8 block", R"({"quant_method":"fp8","weight_block_size":[128,128]})", "fp8_block_w8a8", "bf16"},
        SchemeCase{"fp8 static", R"({"quant_method":"fp8","activation_scheme":"static"})", "fp8_w8a8", "bf16"},
        SchemeCase{"fbgemm", R"({"quant_method":"fbgemm_fp8","modules_to_not_convert":["lm_head"]})", "fp8_w8a8",
                   "bf16"},
        SchemeCase{"mxfp8", R"({"quant_method":"mxfp8","weight_block_size":[1,32]})", "mxfp8", "bf16"},
        SchemeCase{"gptq", R"({"quant_method":"gptq","bits":4,"group_size":32,"desc_act":true})", "mixed_precision",
                   "bf16"},
        SchemeCase{"gptq 3 bit with head", R"({"quant_method":"gptq","bits":3,"group_size":-1,"lm_head":true})",
                   "mixed_precision", "mixed_precision"},
        SchemeCase{"awq", R"({"quant_method":"awq","bits":4,"group_size":64,"version":"gemm"})", "mixed_precision",
                   "bf16"},
        SchemeCase{
            "auto-round",
            R"({"quant_method":"auto-round","bits":4,"group_size":32,"sym":true,"packing_format":"auto_round:auto_gptq"})",
            "mixed_precision", "bf16"},
        SchemeCase{
            "quark",
            R"({"quant_method":"quark","exclude":["lm_head"],"global_quant_config":{"weight":{"dtype":"fp8_e4m3","qscheme":"per_tensor","is_dynamic":false},"input_tensors":{"dtype":"fp8_e4m3","qscheme":"per_tensor","is_dynamic":false}}})",
            "fp8_w8a8", "bf16"}));

// What is read for all experts is what reading each of them gives.
void expect_same_rows(const std::string& config, size_t read) {
  const Checkpoint checkpoint = open_config(config).value();
  const ModelLayers all = read_layers(checkpoint).value();
  const FusedLayers fused = read_fused_layers(checkpoint, false).value();
  EXPECT_EQ(fused.model.layers.size(), read);
  EXPECT_EQ(fused.linear_layers, static_cast<int64_t>(all.layers.size()));
  EXPECT_EQ(fused.model.skipped, all.skipped);
  const std::vector<LayerSpec> wanted = fuse(all.layers);
  ASSERT_EQ(fused.rows.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const LayerSpec &row = fused.rows[i], &other = wanted[i];
    EXPECT_EQ(row.name, other.name);
    EXPECT_EQ(row.parts, other.parts) << row.name;
    EXPECT_EQ(row.experts, other.experts) << row.name;
    EXPECT_EQ(row.weight_bytes, other.weight_bytes) << row.name;
    EXPECT_EQ(layer_class(row), layer_class(other));
    EXPECT_EQ(shard(row, 2).weight_bytes, shard(other, 2).weight_bytes) << row.name;
    ASSERT_EQ(row.modules.size(), other.modules.size()) << row.name;
    for (size_t m = 0; m < row.modules.size(); ++m) {
      EXPECT_EQ(row.modules[m].name, other.modules[m].name);
      EXPECT_EQ(row.modules[m].n, other.modules[m].n);
    }
  }
}

TEST(FusedLayers, OneExpertIsReadForAll) {
  const std::string sparse = kSmall + R"(,"num_experts":12,"moe_intermediate_size":16)";
  expect_same_rows(config_of("Qwen3MoeForCausalLM", sparse), 2 * (4 + 1 + 3) + 1);
  expect_same_rows(config_of("Qwen3MoeForCausalLM", sparse, R"({"quant_method":"fp8","weight_block_size":[16,16]})"),
                   2 * (4 + 1 + 3) + 1);
  expect_same_rows(config_of("MixtralForCausalLM", kSmall + R"(,"num_local_experts":3)"), 2 * (4 + 1 + 3) + 1);
  // A list that names an expert has every expert asked.
  expect_same_rows(config_of("Qwen3MoeForCausalLM", sparse,
                             R"({"quant_method":"fp8","weight_block_size":[16,16],
                                 "modules_to_not_convert":["model.layers.0.mlp.experts.3.up_proj"]})"),
                   2 * (4 + 1 + 12 * 3) + 1);
  expect_same_rows(config_of("LlamaForCausalLM", kSmall), 15);
}

TEST(ConfigAlone, RefusedFormatsStayRefused) {
  const std::string config =
      config_of("LlamaForCausalLM", kSmall, R"({"quant_method":"bitsandbytes","load_in_4bit":true})");
  EXPECT_TRUE(fails(read_config(config), ErrorCode::unsupported_scheme, {"bitsandbytes"}));
  const auto listed = read_config(config, true);
  ASSERT_TRUE(listed.ok()) << listed.error().message();
  EXPECT_EQ(said(listed, "model.layers.0.self_attn.q_proj"), "none");
  EXPECT_EQ(listed->unknown.size(), 15u);
}

TEST(ConfigAlone, TensorsDecideWhereThereAreSome) {
  const auto model = read_table(bf16("only.fc", 8, 8), config_of("LlamaForCausalLM", kSmall));
  EXPECT_EQ(shapes(model, ""), "only.fc 8x8");
}

// ---- configs that cannot be right ----

TEST(ConfigAlone, UnknownArchitecture) {
  for (const std::string& config :
       {std::string("{}"), config_of("FooForCausalLM", kSmall), std::string(R"({"architectures":[7]})")}) {
    const auto model = read_config(config);
    EXPECT_TRUE(fails(model, ErrorCode::unsupported_scheme, {"architecture", "header"})) << config;
    ASSERT_EQ(model.error().details.size(), 1u);
    EXPECT_NE(model.error().details[0].find("LlamaForCausalLM"), std::string::npos);
  }
  EXPECT_TRUE(
      fails(read_config(config_of("FooForCausalLM", kSmall)), ErrorCode::unsupported_scheme, {"FooForCausalLM"}));
}

TEST(ConfigAlone, MissingAndAbsurdKeysAreNamed) {
  const std::vector<std::string> keys = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                                         "vocab_size"};
  for (const std::string& key : keys) {
    for (const std::string value :
         {"", "-1", "0", "1000000000000", "1e12", "12.5", "\"8\"", "[]", "true", "99999999999999999999"}) {
      std::string config;
      for (const std::string& other : keys) {
        if (other == key && value.empty()) continue;
        config += (config.empty() ? "\"" : ",\"") + other + "\":" + (other == key ? value : "4");
      }
      EXPECT_TRUE(fails(read_config(config_of("LlamaForCausalLM", config)), ErrorCode::damaged_checkpoint,
                        {"config.json: " + key}))
          << key << " " << value;
    }
  }
}

TEST(ConfigAlone, NumberOfModulesIsLimited) {
  const std::string many =
      R"("hidden_size":32,"intermediate_size":48,"num_hidden_layers":60000,"num_attention_heads":4,"vocab_size":100)";
  EXPECT_TRUE(fails(read_config(config_of("MixtralForCausalLM", many + R"(,"num_local_experts":60000)")),
                    ErrorCode::damaged_checkpoint, {"modules"}));
}

TEST(ConfigAlone, ShapesThatDoNotBelongTogether) {
  // Heads that do not divide the hidden size, and no head_dim.
  EXPECT_TRUE(fails(
      read_config(config_of(
          "LlamaForCausalLM",
          R"("hidden_size":33,"intermediate_size":48,"num_hidden_layers":1,"num_attention_heads":4,"vocab_size":100)")),
      ErrorCode::damaged_checkpoint, {"num_attention_heads", "33"}));
  // An odd number of columns in a format of two codes a byte.
  EXPECT_TRUE(fails(
      read_config(config_of(
          "LlamaForCausalLM",
          R"("hidden_size":33,"intermediate_size":48,"num_hidden_layers":1,"num_attention_heads":1,"vocab_size":100)",
          R"({"quant_method":"modelopt","quant_algo":"NVFP4"})")),
      ErrorCode::damaged_checkpoint, {"33"}));
  // More rows than 31 bits hold.
  EXPECT_TRUE(fails(
      read_config(config_of(
          "LlamaForCausalLM",
          R"("hidden_size":32,"intermediate_size":48,"num_hidden_layers":1,"num_attention_heads":65536,"head_dim":16777216,"vocab_size":100)")),
      ErrorCode::damaged_checkpoint, {"q_proj"}));
  // A pattern of another length than the model.
  EXPECT_TRUE(fails(
      read_config(config_of("NemotronHForCausalLM",
                            R"("hidden_size":32,"num_hidden_layers":4,"hybrid_override_pattern":"M*","vocab_size":9)")),
      ErrorCode::damaged_checkpoint, {"hybrid_override_pattern"}));
  EXPECT_TRUE(fails(read_config(config_of("Qwen3_5ForCausalLM", kQwenNext + R"(,"layer_types":["full_attention"])")),
                    ErrorCode::damaged_checkpoint, {"layer_types"}));
  EXPECT_TRUE(fails(read_config(config_of("Qwen3_5ForCausalLM", kQwenNext + R"(,"layer_types":["a","b","c","d"])")),
                    ErrorCode::damaged_checkpoint, {"layer_types", "\"a\""}));
  EXPECT_TRUE(
      fails(read_config(config_of("Qwen3MoeForCausalLM",
                                  kSmall + R"(,"num_experts":2,"moe_intermediate_size":16,"mlp_only_layers":["x"])")),
            ErrorCode::damaged_checkpoint, {"mlp_only_layers"}));
  EXPECT_TRUE(fails(read_config(config_of("LlamaForCausalLM", kSmall + R"(,"attention_bias":"yes")")),
                    ErrorCode::damaged_checkpoint, {"attention_bias"}));
}

}  // namespace
}  // namespace gearshift::test
