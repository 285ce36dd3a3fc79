#include "report/layer_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "report/quantities.h"

namespace gearshift {

namespace {

std::string group_key(const LayerPlan& row, const std::string& pattern, const std::string& scheme) {
  const LayerSpec& layer = row.layer;
  std::string key =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n", pattern, layer.n, layer.k, layer.experts, layer.bias, scheme);
  for (const PlannedRange& range : row.decision->by_batch()) {
    key +=
        fmt::format("{}-{} {} {} {}\n", range.m_min, range.m_max, range.kernel->name, range.source, range.activation);
  }
  if (row.decision->rescue) key += std::string(name(row.decision->rescue->kind)) + row.decision->rescue->reason + "\n";
  if (row.decision->fallback) key += row.decision->fallback->requested + "\n" + row.decision->fallback->reason;
  return key;
}

}  // namespace

std::string role_pattern(std::string_view layer_name) {
  std::string out;
  for (size_t begin = 0;;) {
    const size_t end = layer_name.find('.', begin);
    const std::string_view component = layer_name.substr(begin, end == std::string_view::npos ? end : end - begin);
    const bool number = !component.empty() && component.find_first_not_of("0123456789") == std::string_view::npos;
    out += number ? std::string_view("*") : component;
    if (end == std::string_view::npos) return out;
    out += '.';
    begin = end + 1;
  }
}

std::vector<LayerGroup> group_layers(const Plan& plan) {
  std::vector<LayerGroup> groups;
  std::unordered_map<std::string, size_t> index;
  for (const LayerPlan& row : plan.layers) {
    std::string pattern = role_pattern(row.layer.name), scheme = scheme_name(row.layer.scheme);
    const auto [found, fresh] = index.emplace(group_key(row, pattern, scheme), groups.size());
    if (fresh) groups.push_back({std::move(pattern), std::move(scheme), {}, 0});
    LayerGroup& group = groups[found->second];
    group.layers.push_back(&row);
    group.weight_bytes += row.layer.weight_bytes;
  }
  for (LayerGroup& group : groups) {
    if (group.layers.size() == 1) group.pattern = group.spec().name;
  }
  return groups;
}

std::string group_title(const LayerGroup& group) {
  const LayerSpec& layer = group.spec();
  std::string text = fmt::format("{}: {} of {}, {}, weights {}", group.pattern,
                                 count_text(static_cast<int64_t>(group.layers.size()), "layer", "layers"),
                                 shape_text(layer.n, layer.k), group.scheme, format_bytes(group.weight_bytes));
  if (layer.kind == LayerKind::experts) text += ", " + count_text(layer.experts, "expert", "experts") + " each";
  return text;
}

}  // namespace gearshift
