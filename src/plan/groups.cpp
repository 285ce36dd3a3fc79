#include "plan/groups.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"

namespace gearshift {

std::string role_of(std::string_view layer_name) {
  std::vector<std::string> components = split(layer_name, '.');
  for (std::string& component : components) {
    const bool number = !component.empty() && component.find_first_not_of("0123456789") == std::string::npos;
    if (number) component = "*";
  }
  return join(components, ".");
}

void Groups::add(const std::string& text, const std::string& layer_name) {
  const auto [found, is_new] = index_.try_emplace(text, groups_.size());
  if (is_new) groups_.push_back({text, layer_name, 0});
  ++groups_[found->second].rows;
}

int64_t Groups::rows() const {
  return std::accumulate(groups_.begin(), groups_.end(), int64_t{0},
                         [](int64_t sum, const Group& group) { return sum + group.rows; });
}

std::string counted(const Groups::Group& group) {
  if (group.rows == 1) return printable(group.example);
  return std::to_string(group.rows) + " layers, such as " + printable(group.example);
}

}  // namespace gearshift
