#include "quantize/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace gearshift::quantize_detail {
namespace {

struct Group {
  const Preset* preset = nullptr;
  std::vector<size_t> members;  // layers
  std::vector<int> rules;       // that chose them, in order of first use
};

std::vector<Group> group_by_preset(const std::vector<Assignment>& assignments) {
  std::vector<Group> groups;
  for (size_t i = 0; i < assignments.size(); ++i) {
    const Assignment& a = assignments[i];
    if (a.preset->recipe == nullptr) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.preset == a.preset; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{a.preset, {}, {}});
    group->members.push_back(i);
    if (std::find(group->rules.begin(), group->rules.end(), a.rule) == group->rules.end())
      group->rules.push_back(a.rule);
  }
  return groups;
}

// "Linear" for a rule for all layers: readers try names and patterns before classes, so more specific rules still win.
// Else the rules' patterns, if together they match no other quantized layer; else every member by name.
std::vector<std::string> targets_of(const Group& group, const std::vector<LayerSpec>& layers,
                                    const std::vector<Assignment>& assignments,
                                    const std::vector<QuantizeRule>& rules) {
  if (std::any_of(group.rules.begin(), group.rules.end(),
                  [&](int r) { return glob_literals(rules[static_cast<size_t>(r)].glob) == 0; })) {
    return {"Linear"};
  }
  const auto selected = [&](const std::string& name) {
    return std::any_of(group.rules.begin(), group.rules.end(),
                       [&](int r) { return glob_match(rules[static_cast<size_t>(r)].glob, name); });
  };
  bool exact = true;
  for (size_t i = 0; i < layers.size() && exact; ++i) {
    exact =
        assignments[i].preset == group.preset || assignments[i].preset->recipe == nullptr || !selected(layers[i].name);
  }
  std::vector<std::string> targets;
  if (exact) {
    for (int r : group.rules) targets.push_back(glob_to_regex(rules[static_cast<size_t>(r)].glob));
  } else {
    for (size_t i : group.members) targets.push_back(layers[i].name);
  }
  return targets;
}

std::string_view or_null(bool present, std::string_view text) { return present ? text : "null"; }

std::string arguments(const std::optional<QuantArgs>& args, const std::string& indent) {
  if (!args) return "null";
  const std::string in = indent + "  ";
  const std::string scale_dtype = "\"" + std::string(args->scale_dtype) + "\"";
  std::string text = "{\n";
  const auto member = [&](std::string_view key, std::string_view value, bool last = false) {
    text += in + "\"" + std::string(key) + "\": " + std::string(value) + (last ? "\n" : ",\n");
  };
  member("actorder", "null");
  member("block_structure", args->block);
  member("dynamic", args->dynamic);
  member("group_size", args->group_size > 0 ? std::to_string(args->group_size) : "null");
  member("num_bits", std::to_string(args->num_bits));
  member("observer", or_null(args->dynamic != "true", "\"minmax\""));
  member("observer_kwargs", "{}");
  member("scale_dtype", or_null(!args->scale_dtype.empty(), scale_dtype));
  member("strategy", "\"" + std::string(args->strategy) + "\"");
  member("symmetric", args->symmetric ? "true" : "false");
  member("type", "\"" + std::string(args->type) + "\"");
  member("zp_dtype", or_null(!args->scale_dtype.empty(), scale_dtype), true);
  return text + indent + "}";
}

// Offsets of one member of a root object: from the end of what precedes it (a comma or the brace) to the end of its
// value. `text` is valid JSON, so brackets balance and strings end.
size_t skip_space(std::string_view text, size_t at) {
  while (at < text.size() && std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos) ++at;
  return at;
}
size_t skip_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
  return at + 1;
}
size_t skip_value(std::string_view text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = skip_string(text, at);
      continue;
    }
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    ++at;
  }
  return std::min(at, text.size());
}

std::string without_member(const std::string& text, std::string_view key) {
  const std::string quoted = "\"" + std::string(key) + "\"";
  size_t at = text.find('{') + 1;
  while (true) {
    const size_t begin = at;
    at = skip_space(text, at);
    if (at >= text.size() || text[at] != '"') return text;
    const size_t key_end = std::min(skip_string(text, at), text.size());
    const bool found = std::string_view(text).substr(at, key_end - at) == quoted;
    const size_t end = skip_value(text, std::min(text.find(':', key_end), text.size() - 1) + 1);
    const bool followed = end < text.size() && text[end] == ',';
    if (found) {
      // One of the two commas goes with it; the first member has none before it.
      std::string result = text;
      const bool first = text[begin - 1] == '{';
      return first ? result.erase(begin, end - begin + (followed ? 1 : 0)) : result.erase(begin - 1, end - begin + 1);
    }
    if (!followed) return text;
    at = end + 1;
  }
}

}  // namespace

std::vector<std::string> float_names(const std::vector<LayerSpec>& layers, const std::vector<Assignment>& assignments) {
  std::vector<std::string> names;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (assignments[i].preset->recipe == nullptr) names.push_back(layers[i].name);
  }
  return names;
}

std::string json_string(std::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_list(const std::vector<std::string>& items, const std::string& indent) {
  if (items.empty()) return "[]";
  std::string text = "[\n";
  for (const std::string& item : items) {
    text += indent + "  " + json_string(item) + (&item == &items.back() ? "\n" : ",\n");
  }
  return text + indent + "]";
}

std::string glob_to_regex(std::string_view glob) {
  std::string regex = "re:";
  for (char c : glob) {
    if (c == '*') {
      regex += ".*";
    } else {
      const bool plain =
          (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || (c & 0x80) != 0;
      regex += plain ? std::string(1, c) : std::string{'\\', c};
    }
  }
  return glob.ends_with('*') ? regex : regex + "$";
}

std::string quantization_config(const std::vector<LayerSpec>& layers, const std::vector<Assignment>& assignments,
                                const std::vector<QuantizeRule>& rules) {
  const std::vector<Group> groups = group_by_preset(assignments);
  const bool one_format = std::all_of(
      groups.begin(), groups.end(), [&](const Group& g) { return g.preset->format == groups.front().preset->format; });
  const std::vector<std::string> ignore = float_names(layers, assignments);
  std::string text = "{\n    \"config_groups\": {\n";
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const auto targets =
        groups.size() == 1 ? std::vector<std::string>{"Linear"} : targets_of(group, layers, assignments, rules);
    text += "      \"group_" + std::to_string(g) + "\": {\n";
    text += "        \"format\": \"" + std::string(group.preset->format) + "\",\n";
    text += "        \"input_activations\": " + arguments(group.preset->input, "        ") + ",\n";
    text += "        \"output_activations\": null,\n";
    text += "        \"targets\": " + json_list(targets, "        ") + ",\n";
    text += "        \"weights\": " + arguments(group.preset->weights, "        ") + "\n";
    text += g + 1 < groups.size() ? "      },\n" : "      }\n";
  }
  text += "    },\n";
  text += "    \"format\": \"" + std::string(one_format ? groups.front().preset->format : "mixed-precision") + "\",\n";
  text += "    \"global_compression_ratio\": null,\n";
  text += "    \"ignore\": " + json_list(ignore, "    ") + ",\n";
  text += "    \"kv_cache_scheme\": null,\n";
  text += "    \"provider\": \"gearshift " GEARSHIFT_VERSION "\",\n";
  text += "    \"quant_method\": \"compressed-tensors\",\n";
  text += "    \"quantization_status\": \"compressed\"\n  }";
  return text;
}

Result<std::string> with_quantization_config(const std::string& config, const std::string& member) {
  std::string text = without_member(config.empty() ? "{}" : config, "quantization_config");
  const size_t open = text.find('{'), close = text.rfind('}');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return ErrorInfo{ErrorCode::damaged_checkpoint, "config.json", "no object", "a JSON object", "", {}};
  }
  size_t end = close;  // of the last member
  while (end > open + 1 && std::string_view(" \t\r\n").find(text[end - 1]) != std::string_view::npos) --end;
  const bool empty = end == open + 1;
  return text.substr(0, end) + (empty ? "\n" : ",\n") + "  \"quantization_config\": " + member + "\n" +
         text.substr(close);
}

}  // namespace gearshift::quantize_detail
