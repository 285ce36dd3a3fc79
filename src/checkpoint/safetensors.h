// One safetensors file: u64 length of the header, little-endian; the header, JSON; the data of all tensors without
// holes. Source: huggingface/safetensors, README.md ("Format") and safetensors/src/tensor.rs.
#pragma once

#include "gearshift/checkpoint.h"

namespace gearshift {

// Both reader and writer refuse a longer header, as the safetensors library does.
constexpr uint64_t kSafetensorsHeaderLimit = 100'000'000;

// How errors name a tensor: tensor "model.norm.weight".
std::string tensor_called(std::string_view name);

// Size of the stored elements; nullopt where a dimension is negative, the product overflows, or the elements (of 4 or 6
// bits) end inside a byte.
std::optional<uint64_t> stored_bytes(DType dtype, const Shape& shape);

struct SafetensorsTable {
  std::vector<TensorInfo> tensors;  // in the order of their data; offsets from the start of the file
  bool has_data = true;             // false: the file ends right after its header
};
// Reads the header of a whole file and checks it against the file's length. Reads no tensor data. `subject` names the
// file in errors, which are damaged_checkpoint or, for bytes of another known format, unsupported_scheme.
// Names are not compared with each other: Checkpoint::open does that for all files at once.
Result<SafetensorsTable> read_safetensors(ByteView file, const std::string& subject);

}  // namespace gearshift
