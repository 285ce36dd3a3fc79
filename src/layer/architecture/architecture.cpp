#include "layer/architecture/architecture.h"

#include <array>

#include "base/text.h"

namespace gearshift {
namespace {

struct Architecture {
  std::string_view name;  // config.json architectures[0]
  void (*build)(ModelBuilder&);
};
constexpr std::array kArchitectures = {
    Architecture{"LlamaForCausalLM", architecture::llama},
    Architecture{"MistralForCausalLM", architecture::llama},
    Architecture{"Mistral3ForConditionalGeneration", architecture::mistral3},
    Architecture{"Qwen2ForCausalLM", architecture::qwen2},
    Architecture{"Qwen3ForCausalLM", architecture::qwen3},
    Architecture{"Qwen3MoeForCausalLM", architecture::qwen3_moe},
    Architecture{"Qwen3NextForCausalLM", architecture::qwen3_next},
    Architecture{"Qwen3_5ForCausalLM", architecture::qwen3_5},
    Architecture{"Qwen3_5ForConditionalGeneration", architecture::qwen3_5},
    Architecture{"Qwen3_5MoeForCausalLM", architecture::qwen3_5},
    Architecture{"Qwen3_5MoeForConditionalGeneration", architecture::qwen3_5},
    Architecture{"MixtralForCausalLM", architecture::mixtral},
    Architecture{"MiniMaxM2ForCausalLM", architecture::mixtral},
    Architecture{"DeepseekV3ForCausalLM", architecture::deepseek},
    Architecture{"KimiK25ForConditionalGeneration", architecture::kimi_k25},
    Architecture{"GptOssForCausalLM", architecture::gpt_oss},
    Architecture{"Glm4MoeForCausalLM", architecture::glm4_moe},
    Architecture{"Gemma3ForCausalLM", architecture::gemma3},
    Architecture{"Gemma3ForConditionalGeneration", architecture::gemma3},
    Architecture{"Gemma4ForConditionalGeneration", architecture::gemma4},
    Architecture{"Phi3ForCausalLM", architecture::phi3},
    Architecture{"NemotronHForCausalLM", architecture::nemotron_h},
};

ErrorInfo unknown(const std::string& name) {
  ErrorInfo error;
  error.code = ErrorCode::unsupported_scheme;
  error.subject = "config.json without tensors";
  error.found = name.empty() ? "no architecture" : "architecture \"" + printable(name, 80) + "\"";
  error.wanted = "one whose layers are known without tensors";
  error.hint =
      "put the head of each safetensors file beside the config: its first 8 bytes hold the length of the header that "
      "follows (an HTTP range request fetches both), and a file that ends there is enough to plan";
  std::string known;
  for (const Architecture& architecture : kArchitectures)
    known += (known.empty() ? "known: " : ", ") + std::string(architecture.name);
  error.details.push_back(std::move(known));
  return error;
}

}  // namespace

namespace architecture {

bool is_wrapped(const ModelBuilder& model) { return model.config().config->find("text_config") != nullptr; }

}  // namespace architecture

Result<std::vector<FloatModule>> float_modules(const ModelConfig& config, ExpertCounts* counts) {
  for (const Architecture& known : kArchitectures) {
    if (known.name != config.architecture) continue;
    ModelBuilder model(config, counts);
    known.build(model);
    return model.finish();
  }
  return unknown(config.architecture);
}

}  // namespace gearshift
