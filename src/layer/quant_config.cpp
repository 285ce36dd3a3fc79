#include "layer/quant_config.h"

#include <array>

#include "base/text.h"
#include "base/try.h"

namespace gearshift {
namespace {

struct Alias {
  std::string_view spelling, method;
};
constexpr std::array kAliases = {
    Alias{"compressed_tensors", "compressed-tensors"},
    Alias{"sparseml", "compressed-tensors"},
    Alias{"modelopt_fp4", "modelopt"},
    Alias{"modelopt_mixed", "modelopt"},
    Alias{"modelopt_mxfp8", "modelopt"},
    Alias{"intel/auto-round", "auto-round"},
    Alias{"auto_round", "auto-round"},
    Alias{"inc", "auto-round"},
};

// Side files that can hold the dictionary when config.json has none, and the method they mean when they name none.
struct SideFile {
  std::string_view file, method;
};
constexpr std::array kSideFiles = {
    SideFile{"hf_quant_config.json", "modelopt"}, SideFile{"quantize_config.json", "gptq"},
    SideFile{"quant_config.json", "awq"},         SideFile{"quantization_config.json", "auto-round"},
    SideFile{"quant_cfg.json", "tensorrt-llm"},
};

const Json* object(const Json* json) { return json != nullptr && json->is(Json::Kind::object) ? json : nullptr; }

// The method a dictionary means by the keys it has, where it names none.
std::string_view method_by_keys(const Json& dict) {
  const Json* producer = dict.at({"producer", "name"});
  if (producer != nullptr && lower(producer->string) == "modelopt") return "modelopt";
  if (dict.find("quant_algo") != nullptr) return "modelopt";
  if (dict.find("config_groups") != nullptr) return "compressed-tensors";
  if (dict.find("global_quant_config") != nullptr) return "quark";
  return "";
}

std::string method_of(const Json& dict, std::string_view otherwise) {
  std::string method = lower(dict.text_or("quant_method", ""));
  for (const Alias& alias : kAliases) {
    if (method == alias.spelling) return std::string(alias.method);
  }
  if (method.empty()) method = method_by_keys(dict);
  return method.empty() ? std::string(otherwise) : method;
}

// The dictionary of config.json itself, in the order of precedence.
void look_into_config(const Json& config, QuantConfig* quant) {
  struct Spot {
    const Json* dict;
    std::string_view source, method;
    bool text_only;
  };
  const std::array spots = {
      Spot{object(config.find("quantization_config")), "config.json: quantization_config", "", false},
      Spot{object(config.at({"text_config", "quantization_config"})), "config.json: text_config.quantization_config",
            "", true},
      Spot{object(config.find("compression_config")), "config.json: compression_config", "compressed-tensors", false},
      Spot{object(config.at({"text_config", "compression_config"})), "config.json: text_config.compression_config",
            "compressed-tensors", true},
  };
  for (const Spot& spot : spots) {
    if (spot.dict == nullptr || spot.dict->members.empty()) continue;
    quant->dict = spot.dict;
    quant->source = spot.source;
    quant->text_only = spot.text_only;
    quant->method = method_of(*spot.dict, spot.method);
    break;
  }
  if (quant->dict == nullptr) return;
  // Legacy: the dictionary proper one level deeper; ModelOpt's own file pasted in as it is.
  for (std::string_view inner : {"quantization_config", "quantization"}) {
    const Json* deeper = object(quant->dict->find(inner));
    if (deeper == nullptr) continue;
    const std::string method = method_of(*deeper, quant->method);
    if (method == "modelopt" || method == "compressed-tensors") {
      quant->dict = deeper;
      quant->source += "." + std::string(inner);
      quant->method = method;
    }
    return;
  }
}

Result<void> look_into_side_files(const Checkpoint& checkpoint, ModelConfig* model) {
  for (const SideFile& side : kSideFiles) {
    const std::string& text = checkpoint.side_file(side.file);
    if (text.empty()) continue;
    GEARSHIFT_TRY(Json json, parse_json(text, std::string(side.file)));
    auto root = std::make_shared<const Json>(std::move(json));
    if (!root->is(Json::Kind::object)) {
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       std::string(side.file),
                       std::string(name(root->kind)),
                       "a JSON object",
                       "",
                       {}};
    }
    const Json* nested = object(root->find("quantization"));
    model->quant.dict = nested != nullptr ? nested : root.get();
    model->quant.source = std::string(side.file) + (nested != nullptr ? ": quantization" : "");
    model->quant.method = method_of(*model->quant.dict, method_of(*root, side.method));
    model->side = std::move(root);
    return {};
  }
  return {};
}

// Old ModelOpt exports keep the algorithm only in hf_quant_config.json although config.json has a dictionary, too.
Result<void> complete_modelopt(const Checkpoint& checkpoint, ModelConfig* model) {
  QuantConfig& quant = model->quant;
  if (quant.method != "modelopt" || quant.dict == nullptr || quant.dict->find("quant_algo") != nullptr) return {};
  const std::string& text = checkpoint.side_file("hf_quant_config.json");
  if (text.empty()) return {};
  GEARSHIFT_TRY(Json json, parse_json(text, "hf_quant_config.json"));
  auto root = std::make_shared<const Json>(std::move(json));
  const Json* nested = object(root->find("quantization"));
  if (nested == nullptr || nested->find("quant_algo") == nullptr) return {};
  quant.dict = nested;
  quant.source = "hf_quant_config.json: quantization";
  model->side = std::move(root);
  return {};
}

std::optional<DType> activation_dtype(std::string_view word) {
  if (word.starts_with("torch.")) word.remove_prefix(6);
  if (word == "bfloat16") return DType::bf16;
  if (word == "float16" || word == "half") return DType::f16;
  if (word == "float32" || word == "float") return DType::f32;
  return std::nullopt;
}

// `json` as the object it should be; the text is "" when the file does not exist.
Result<std::shared_ptr<const Json>> parse_object(const std::string& text, const std::string& file) {
  if (text.empty()) return std::make_shared<const Json>();
  GEARSHIFT_TRY(Json json, parse_json(text, file));
  if (!json.is(Json::Kind::object)) {
    return ErrorInfo{
        ErrorCode::damaged_checkpoint, file, "a JSON " + std::string(name(json.kind)), "a JSON object", "", {}};
  }
  return std::make_shared<const Json>(std::move(json));
}

int64_t count(const ModelConfig& model, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) {
    const Json* value = model.find(key);
    if (value != nullptr && value->is(Json::Kind::integer) && value->integer > 0) return value->integer;
  }
  return 0;
}

}  // namespace

const Json* ModelConfig::find(std::string_view key) const {
  const Json* top = config->find(key);
  return top != nullptr && !top->is_null() ? top : config->at({"text_config", key});
}

Result<ModelConfig> read_model_config(const Checkpoint& checkpoint) {
  ModelConfig model;
  GEARSHIFT_TRY(model.config, parse_object(checkpoint.side_file("config.json"), "config.json"));
  look_into_config(*model.config, &model.quant);
  if (model.quant.dict == nullptr) {
    GEARSHIFT_CHECK(look_into_side_files(checkpoint, &model));
  }
  GEARSHIFT_CHECK(complete_modelopt(checkpoint, &model));
  if (model.quant.dict == nullptr && !checkpoint.side_file("params.json").empty()) {
    GEARSHIFT_TRY(model.side, parse_object(checkpoint.side_file("params.json"), "params.json"));
    for (std::string_view key : {"quantization_config", "quantization"}) {
      if (const Json* dict = object(model.side->find(key)); dict != nullptr && model.quant.dict == nullptr) {
        model.quant.dict = dict;
        model.quant.source = "params.json: " + std::string(key);
        model.quant.method = method_of(*dict, "mistral");
      }
    }
  }

  const Json* architectures = model.config->find("architectures");
  if (architectures != nullptr && !architectures->items.empty()) model.architecture = architectures->items[0].string;
  model.model_type = model.config->text_or("model_type", "");
  if (const Json* text = model.config->at({"text_config", "model_type"}); text != nullptr && !text->string.empty())
    model.model_type = text->string;
  for (std::string_view key : {"dtype", "torch_dtype"}) {
    const Json* dtype = model.find(key);
    if (dtype != nullptr && !model.dtype) model.dtype = activation_dtype(dtype->string);
  }
  model.tied_head = model.config->boolean_or("tie_word_embeddings", false);
  if (const Json* text = model.config->find("text_config"); text != nullptr) {
    model.tied_head = model.tied_head || text->boolean_or("tie_word_embeddings", false);
  }
  model.hidden_layers = count(model, {"num_hidden_layers", "n_layer", "num_layers"});
  model.hidden_size = count(model, {"hidden_size", "n_embd", "d_model"});
  model.experts = count(model, {"num_experts", "n_routed_experts", "num_local_experts"});
  return model;
}

}  // namespace gearshift
