#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "gearshift/layer.h"
#include "layer/modules.h"

namespace gearshift {
namespace {

// The stored dtype of the codes: float weights of different dtypes stay apart.
DType weight_dtype(const LayerSpec& layer) {
  for (const StoredTensor& tensor : layer.modules.front().tensors) {
    if (tensor.role == TensorRole::weight) return tensor.dtype;
  }
  return DType::f32;
}

bool may_join(const LayerSpec& a, const LayerSpec& b) {
  return a.k == b.k && a.scheme == b.scheme && a.kind == b.kind && weight_dtype(a) == weight_dtype(b);
}

// The largest set of `rows` that agree (the earliest among equals); fewer than two: empty.
std::vector<size_t> agreeing(const std::vector<LayerSpec>& layers, const std::vector<size_t>& rows) {
  std::vector<size_t> best;
  for (size_t i : rows) {
    std::vector<size_t> set;
    for (size_t j : rows) {
      if (may_join(layers[i], layers[j])) set.push_back(j);
    }
    if (set.size() > best.size()) best = std::move(set);
  }
  return best.size() >= 2 ? best : std::vector<size_t>{};
}

// Moves the rows of `set` into one, in the order of `set`.
LayerSpec join(std::vector<LayerSpec>& layers, const std::vector<size_t>& set, std::string fused) {
  LayerSpec row = std::move(layers[set.front()]);
  row.parts = {row.name};
  row.name = std::move(fused);
  for (size_t i = 1; i < set.size(); ++i) {
    LayerSpec& part = layers[set[i]];
    row.parts.push_back(part.name);
    row.n += part.n;
    row.bias = row.bias || part.bias;
    row.weight_bytes += part.weight_bytes;
    std::move(part.modules.begin(), part.modules.end(), std::back_inserter(row.modules));
  }
  return row;
}

struct Join {
  std::vector<size_t> rows;
  std::string fused;
};

// Which rows to join, decided before any of them moves.
std::vector<Join> sibling_joins(const std::vector<LayerSpec>& layers) {
  std::unordered_map<std::string_view, size_t> index;
  index.reserve(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) index.emplace(layers[i].name, i);
  std::vector<Join> joins;
  std::vector<bool> seen(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    if (seen[i] || layers[i].stacked) continue;
    const std::string_view last = last_component(layers[i].name);
    for (const FusedName& siblings : fused_names()) {
      if (std::find(siblings.parts.begin(), siblings.parts.end(), last) == siblings.parts.end()) continue;
      std::vector<size_t> present;
      for (std::string_view part : siblings.parts) {
        const auto found = part.empty() ? index.end() : index.find(sibling(layers[i].name, part));
        if (found == index.end() || layers[found->second].stacked) continue;
        present.push_back(found->second);
        seen[found->second] = true;
      }
      Join join{agreeing(layers, present), sibling(layers[i].name, siblings.fused)};
      if (!join.rows.empty() && !index.contains(join.fused)) joins.push_back(std::move(join));
      break;
    }
  }
  return joins;
}

// Rows that went into another one are left with no modules.
void join_siblings(std::vector<LayerSpec>& layers) {
  for (Join& planned : sibling_joins(layers)) {
    LayerSpec row = join(layers, planned.rows, std::move(planned.fused));
    for (size_t used : planned.rows) layers[used].modules.clear();
    layers[planned.rows.front()] = std::move(row);
  }
}

bool same_expert_row(const LayerSpec& a, const LayerSpec& b) {
  if (!may_join(a, b) || a.n != b.n || a.bias != b.bias || a.modules.size() != b.modules.size()) return false;
  for (size_t i = 0; i < a.modules.size(); ++i) {
    if (a.modules[i].n != b.modules[i].n || last_component(a.modules[i].name) != last_component(b.modules[i].name))
      return false;
  }
  return true;
}

// "a.experts.3.up_proj" -> "a.experts.*.up_proj"
std::string starred(std::string_view name) {
  const std::optional<ExpertName> expert = expert_name(name);
  return expert ? std::string(expert->container) + ".*." + std::string(expert->rest) : std::string(name);
}

// Whether these are numbers that follow one another, from whichever on: a slice of the experts counts, one with holes
// does not, because a row knows its experts by their positions.
bool follow_one_another(const std::set<std::string>& numbers) {
  std::set<int64_t> values;
  for (const std::string& text : numbers) {
    const std::optional<int64_t> value = parse_integer(text);
    if (!value || !values.insert(*value).second) return false;
  }
  return !values.empty() && *values.rbegin() - *values.begin() == static_cast<int64_t>(values.size()) - 1;
}

// Joins the experts of a layer, one row for each projection, where they are numbered without holes, every expert has
// the projection and all of them agree; otherwise each expert keeps its rows.
void join_experts(std::vector<LayerSpec>& layers) {
  struct Container {
    std::set<std::string> numbers;
    std::map<std::string, std::vector<size_t>> rows;  // by what stands behind the number
  };
  std::map<std::string, Container> containers;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].modules.empty() || layers[i].stacked) continue;
    const std::optional<ExpertName> expert = expert_name(layers[i].name);
    if (!expert) continue;
    Container& container = containers[std::string(expert->container)];
    container.numbers.emplace(expert->number);
    container.rows[std::string(expert->rest)].push_back(i);
  }
  for (auto& [prefix, container] : containers) {
    if (!follow_one_another(container.numbers)) continue;
    for (auto& [rest, rows] : container.rows) {
      const LayerSpec& first = layers[rows.front()];
      const bool all = rows.size() == container.numbers.size() && std::all_of(rows.begin(), rows.end(), [&](size_t i) {
                         return same_expert_row(first, layers[i]);
                       });
      if (!all) continue;
      LayerSpec row = std::move(layers[rows.front()]);
      const std::vector<std::string> parts = row.parts.empty() ? std::vector<std::string>{row.name} : row.parts;
      row.name = prefix + "." + rest;
      row.parts.clear();
      for (const std::string& part : parts) row.parts.push_back(starred(part));
      row.experts = static_cast<int64_t>(rows.size());
      for (size_t i = 1; i < rows.size(); ++i) {
        LayerSpec& other = layers[rows[i]];
        row.weight_bytes += other.weight_bytes;
        std::move(other.modules.begin(), other.modules.end(), std::back_inserter(row.modules));
        other.modules.clear();
      }
      layers[rows.front()] = std::move(row);
    }
  }
}

}  // namespace

std::vector<LayerSpec> fuse(std::vector<LayerSpec> layers) {
  join_siblings(layers);
  join_experts(layers);
  layers.erase(
      std::remove_if(layers.begin(), layers.end(), [](const LayerSpec& layer) { return layer.modules.empty(); }),
      layers.end());
  // A fused row stands where its first part would.
  auto place = [](const LayerSpec& layer) -> std::string_view {
    return layer.parts.empty() ? std::string_view(layer.name) : std::string_view(layer.parts.front());
  };
  const auto earlier = [&](const LayerSpec& a, const LayerSpec& b) { return natural_less(place(a), place(b)); };
  if (!std::is_sorted(layers.begin(), layers.end(), earlier)) std::stable_sort(layers.begin(), layers.end(), earlier);
  return layers;
}

}  // namespace gearshift
