// Which modules a model has and how large they are, by the architecture that its config names: what `plan` works on
// when there are no tensors. Names and shapes are those of the public model definitions in transformers and of the
// checkpoints published with them.
#pragma once

#include "layer/architecture/float_module.h"
#include "layer/architecture/model_builder.h"

namespace gearshift {

// Errors: unsupported_scheme (an architecture that is not known here), damaged_checkpoint (a key that is missing or absurd).
// `counts`: see ModelBuilder.
Result<std::vector<FloatModule>> float_modules(const ModelConfig& config, ExpertCounts* counts = nullptr);

// One function a file of architectures; each adds its modules to the builder.
namespace architecture {

void llama(ModelBuilder& model);
void mistral3(ModelBuilder& model);
void qwen2(ModelBuilder& model);
void qwen3(ModelBuilder& model);
void phi3(ModelBuilder& model);
void gemma3(ModelBuilder& model);
void gemma4(ModelBuilder& model);

void qwen3_moe(ModelBuilder& model);
void mixtral(ModelBuilder& model);
void glm4_moe(ModelBuilder& model);
void gpt_oss(ModelBuilder& model);

void deepseek(ModelBuilder& model);
void kimi_k25(ModelBuilder& model);
void qwen3_next(ModelBuilder& model);
void qwen3_5(ModelBuilder& model);
void nemotron_h(ModelBuilder& model);

// Vision towers beside a language model; nothing where the config has no vision_config.
void siglip_tower(ModelBuilder& model);
void gemma4_tower(ModelBuilder& model);
void moonvit_tower(ModelBuilder& model);
void pixtral_tower(ModelBuilder& model);
void qwen_tower(ModelBuilder& model);

// A model with wrapper and text_config, whose tensors have other names.
bool is_wrapped(const ModelBuilder& model);

}  // namespace architecture
}  // namespace gearshift
