#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "gearshift/routing.h"
#include "layer/quant_config.h"

namespace gearshift {
namespace {

int64_t counted(const ModelConfig& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const Json* value = config.find(key);
    if (value != nullptr && value->is(Json::Kind::integer) && value->integer > 0) return value->integer;
  }
  return 0;
}

float number(const ModelConfig& config, std::string_view key, float otherwise) {
  const Json* value = config.find(key);
  if (value == nullptr) return otherwise;
  if (value->is(Json::Kind::integer)) return static_cast<float>(value->integer);
  return value->is(Json::Kind::number) ? static_cast<float>(value->number) : otherwise;
}

ExpertFunction::Kind kind_of_word(const std::string& word) {
  using Kind = ExpertFunction::Kind;
  if (word == "silu" || word == "swish" || word == "swiglu" || word == "swigluoai") return Kind::silu;
  if (word == "gelu") return Kind::gelu;
  if (word == "gelu_pytorch_tanh" || word == "gelu_tanh" || word == "gelu_new" || word == "gelu_fast")
    return Kind::gelu_tanh;
  if (word == "relu2" || word == "squared_relu" || word == "relu_squared") return Kind::relu2;
  return Kind::unknown;
}

// gpt-oss states silu and means gate * sigmoid(1.702 gate) * (up + 1), both clamped; MiniMax-M3 calls that swigluoai. A
// limit alone (DeepSeek-V4) clamps and changes nothing else. Silent configs mean silu, the default of mixtures of
// experts.
ExpertFunction function_of(const ModelConfig& config) {
  ExpertFunction function;
  std::string word;
  for (const std::string_view key : {"mlp_hidden_act", "hidden_act", "hidden_activation"}) {
    const Json* value = config.find(key);
    if (word.empty() && value != nullptr && value->is(Json::Kind::string)) word = lower(value->string);
  }
  const bool oai = word == "swigluoai" || config.model_type == "gpt_oss" || config.architecture.starts_with("GptOss");
  function.kind = kind_of_word(word.empty() ? "silu" : word);
  if (function.kind != ExpertFunction::Kind::silu) return function;
  function.limit = std::max(0.0f, number(config, "swiglu_limit", oai ? 7.0f : 0.0f));
  if (!oai) return function;
  function.alpha = number(config, "swiglu_alpha", 1.702f);
  function.up_offset = 1;
  return function;
}

}  // namespace

Result<ExpertRouting> read_routing(const Checkpoint& checkpoint) {
  GEARSHIFT_TRY(const ModelConfig config, read_model_config(checkpoint));
  ExpertRouting routing;
  routing.routed = config.experts;
  routing.top_k = counted(config, {"num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_top_k",
                                   "moe_topk", "top_k_experts"});
  if (routing.routed > 0) routing.top_k = std::min(routing.top_k, routing.routed);
  routing.function = function_of(config);
  return routing;
}

std::string_view name(ExpertFunction::Kind kind) {
  switch (kind) {
    case ExpertFunction::Kind::silu:
      return "silu";
    case ExpertFunction::Kind::gelu:
      return "gelu";
    case ExpertFunction::Kind::gelu_tanh:
      return "gelu_tanh";
    case ExpertFunction::Kind::relu2:
      return "relu2";
    case ExpertFunction::Kind::unknown:
      break;
  }
  return "unknown";
}

// Both divide before they multiply, so that batches and counts from untrusted configs stay inside 64 bits; beyond these
// limits nothing is scaled.
namespace {
constexpr int64_t kMostExperts = int64_t{1} << 20, kMostRows = int64_t{1} << 42;

bool scales(const ExpertRouting& routing, int64_t count) {
  return routing.known() && routing.routed <= kMostExperts && count > 0 && count <= kMostRows;
}
}  // namespace

int64_t expected_rows(const ExpertRouting& routing, int64_t batch) {
  if (!scales(routing, batch)) return batch;
  const int64_t rest = batch % routing.routed * routing.top_k;
  return batch / routing.routed * routing.top_k + (rest + routing.routed - 1) / routing.routed;
}

int64_t rows_within(const ExpertRouting& routing, int64_t batch) {
  if (!scales(routing, batch)) return batch;
  // The largest r with r * routed < (batch + 1) * top_k.
  const int64_t next = batch + 1, rest = next % routing.routed * routing.top_k;
  return next / routing.routed * routing.top_k + (rest + routing.routed - 1) / routing.routed - 1;
}

int64_t batch_of_rows(const ExpertRouting& routing, int64_t rows) {
  if (!scales(routing, rows)) return rows;
  return rows / routing.top_k * routing.routed + rows % routing.top_k * routing.routed / routing.top_k;
}

}  // namespace gearshift
