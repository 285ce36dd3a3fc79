#include "pipeline/expert_pairs.h"

#include <map>

namespace gearshift {

std::vector<ExpertPair> expert_pairs(const std::vector<LayerSpec>& rows) {
  std::map<std::string, std::vector<size_t>> blocks;  // rows by what stands before the last dot
  for (size_t row = 0; row < rows.size(); ++row) {
    const size_t dot = rows[row].name.rfind('.');
    if (rows[row].kind != LayerKind::experts || dot == std::string::npos) continue;
    if (rows[row].experts > 1 || rows[row].stacked) blocks[rows[row].name.substr(0, dot)].push_back(row);
  }
  std::vector<ExpertPair> pairs;
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto block = blocks.find(rows[row].name.substr(0, rows[row].name.rfind('.')));
    if (block == blocks.end() || block->second.size() != 2 || block->second.front() != row) continue;
    ExpertPair pair{block->second[0], block->second[1], block->first};
    const auto is_second = [&](size_t which) {
      const std::string last = rows[which].name.substr(pair.name.size() + 1);
      return last == "down_proj" || last == "w2" || last == "linear_fc2";
    };
    if (is_second(pair.first)) std::swap(pair.first, pair.second);
    const LayerSpec &in = rows[pair.first], &out = rows[pair.second];
    const bool fits = in.experts == out.experts && in.k == out.n && (in.n == out.k || in.n == 2 * out.k);
    if (is_second(pair.second) && fits) pairs.push_back(std::move(pair));
  }
  return pairs;
}

}  // namespace gearshift
