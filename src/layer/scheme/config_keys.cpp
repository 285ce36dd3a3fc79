#include "layer/scheme/config_keys.h"

#include <algorithm>

#include "base/try.h"
#include "layer/scheme/names.h"

namespace gearshift {
namespace {

constexpr int64_t kMaxGroup = int64_t{1} << 31;

}  // namespace

ErrorInfo unsupported_scheme(std::string subject, std::string found, std::string wanted) {
  return ErrorInfo{ErrorCode::unsupported_scheme,
                   std::move(subject),
                   std::move(found),
                   std::move(wanted),
                   "quantize the original float checkpoint with `gearshift quantize`",
                   {}};
}

Result<std::vector<std::string>> string_list(const Json* json, const std::string& subject) {
  std::vector<std::string> list;
  if (json == nullptr || json->is_null()) return list;
  const ErrorInfo wrong{ErrorCode::damaged_checkpoint, subject, std::string(name(json->kind)),
                        "a list of strings",           "",      {}};
  if (!json->is(Json::Kind::array)) return wrong;
  list.reserve(json->items.size());
  for (const Json& item : json->items) {
    if (!item.is(Json::Kind::string)) return wrong;
    list.push_back(item.string);
  }
  return list;
}

Result<std::optional<int64_t>> integer_member(const Json& object, std::initializer_list<std::string_view> keys,
                                              const std::string& where) {
  for (std::string_view key : keys) {
    const Json* value = object.find(key);
    if (value == nullptr || value->is_null()) continue;
    if (value->is(Json::Kind::integer)) return std::optional{value->integer};
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     where + "." + std::string(key),
                     std::string(name(value->kind)),
                     "an integer",
                     "",
                     {}};
  }
  return std::optional<int64_t>{};
}

Result<int64_t> group_size_member(const Json& object, const std::string& where, int64_t otherwise) {
  GEARSHIFT_TRY(const std::optional<int64_t> size, integer_member(object, {"group_size", "q_group_size"}, where));
  if (!size) return otherwise;
  if (*size == -1 || (*size > 0 && *size <= kMaxGroup)) return *size;
  return ErrorInfo{ErrorCode::damaged_checkpoint,
                   where + ".group_size",
                   std::to_string(*size),
                   "a positive number of columns, or -1 for one group a row",
                   "",
                   {}};
}

std::optional<std::string> rule_name(const ModelConfig& config, const ModuleTensors& module) {
  return config.quant.text_only ? text_name(module.name) : module.name;
}

bool stays_float_unlisted(const ModuleTensors& module) {
  if (module.tied_head || module.draft || is_router_like(module.name)) return true;
  const std::string_view core = core_name(module.name);
  if (core == "lm_head" || core == "head" || core == "output" || core == "score") return true;
  constexpr std::string_view kTowers[] = {
      "vision", "visual", "audio", "multi_modal_projector", "multimodal_projector", "mm_projector"};
  return std::any_of(std::begin(kTowers), std::end(kTowers),
                     [&](std::string_view tower) { return core.starts_with(tower); });
}

bool is_never_converted(const ModuleTensors& module) {
  ModuleTensors layer = module;
  layer.draft = false;
  const std::string_view last = last_component(module.name);
  const bool draft_border = module.draft && (last == "eh_proj" || last == "head" || last == "fc");
  return draft_border || stays_float_unlisted(layer);
}

bool is_in_decoder(const ModuleTensors& module) {
  return has_components(module.name, "layers") && !stays_float_unlisted(module);
}

ErrorInfo unexpected_float(const ModuleTensors& module, const std::string& expected, const QuantConfig& quant) {
  return ErrorInfo{ErrorCode::damaged_checkpoint,
                   module.name,
                   std::string(name(module.find("weight")->dtype)) + " weight without scales",
                   expected + ": " + quant.source + " does not exclude this module",
                   "add it to the excluded modules if it was left in float on purpose",
                   {}};
}

bool has_components(std::string_view name, std::string_view part) {
  if (part.empty()) return false;
  for (size_t at = name.find(part); at != std::string_view::npos; at = name.find(part, at + 1)) {
    const size_t end = at + part.size();
    const bool starts = at == 0 || name[at - 1] == '.' || part.front() == '.';
    const bool ends = end == name.size() || name[end] == '.' || part.back() == '.';
    if (starts && ends) return true;
  }
  return false;
}

}  // namespace gearshift
