// Which files make up a checkpoint.
#pragma once

#include "gearshift/base.h"

namespace gearshift {

struct CheckpointLocation {
  std::vector<std::string> files;                               // safetensors files, in natural order of names
  std::vector<std::pair<std::string, std::string>> weight_map;  // tensor -> one of `files`, where there is an index
  std::string index;                                            // the index's path, empty where there is none
  std::string directory;  // where side files stand; empty: there are none but `config`
  std::string config;     // the file that stands for config.json, where `path` named one
};
// Looks at names and at the index; opens no safetensors file. Errors: those of Checkpoint::open.
Result<CheckpointLocation> locate_checkpoint(const std::string& path);

}  // namespace gearshift
