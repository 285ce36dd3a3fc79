// Rows that are told apart by their number only: what warnings and errors count.
#pragma once

#include <map>

#include "gearshift/base.h"

namespace gearshift {

// "model.layers.*.mlp.down_proj": components that are numbers become "*".
std::string role_of(std::string_view layer_name);

// Counts rows per text, in order of first appearance, and keeps the first row's name.
class Groups {
 public:
  struct Group {
    std::string text, example;
    int64_t rows = 0;
  };
  void add(const std::string& text, const std::string& layer_name);
  const std::vector<Group>& groups() const { return groups_; }
  int64_t rows() const;

 private:
  std::vector<Group> groups_;
  std::map<std::string, size_t, std::less<>> index_;
};
// "6 layers, such as model.layers.0.mlp.down_proj"; the name alone for one.
std::string counted(const Groups::Group& group);

}  // namespace gearshift
