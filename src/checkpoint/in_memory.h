// Checkpoints that no file holds.
#pragma once

#include <map>

#include "gearshift/checkpoint.h"

namespace gearshift {

// A tensor that is in memory already.
struct MemoryTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  ByteView data;  // as many bytes as the shape has, any alignment
};

// The data is copied; `label` stands for the path in messages; side files by name ("config.json"). Errors usage: a name
// twice, a shape that its bytes do not fill.
Result<Checkpoint> checkpoint_in_memory(const std::string& label, const std::vector<MemoryTensor>& tensors,
                                        std::map<std::string, std::string, std::less<>> side_files = {});

// What checkpoint_in_memory() hands to Checkpoint::open in the calling thread, which takes it instead of files; nullptr
// at all other times.
struct MemoryFiles {
  std::string label;
  std::vector<TensorInfo> tensors;  // offsets into `data`
  std::vector<uint8_t> data;
  std::map<std::string, std::string, std::less<>> side_files;
};
std::unique_ptr<MemoryFiles> take_memory_files();

}  // namespace gearshift
