// Files -> a table of named tensors, bytes on demand. Knows nothing of quantization.
//
// A Checkpoint maps its safetensors files read-only; byte views stay valid as long as the Checkpoint (or a copy of it:
// copies share the mappings) lives. Const use from many threads is safe. Everything read is untrusted: every length is
// checked before use, and no tensor reaches outside its file or into another tensor.
//
// Files must not shrink while they are mapped: reading bytes that are gone ends the process with SIGBUS, which no check
// at open can prevent. Replace a checkpoint by renaming new files over it, as write_safetensors does.
#pragma once

#include <memory>

#include "gearshift/base.h"

namespace gearshift {

struct TensorInfo {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  int file = 0;         // index into Checkpoint::files()
  uint64_t offset = 0;  // of the first byte, from the start of the file
  uint64_t bytes = 0;   // size of the data
};

struct CheckpointFile {
  std::string path;
  bool has_data = true;  // false: the file ends right after its header; enough for plan, inspect and bench
};

class Checkpoint {
 public:
  // `path`: a directory with config.json and safetensors files, one .safetensors file, or a config.json alone (then
  // there are no tensors). In a directory the index decides; without one model.safetensors, else all safetensors files.
  // A tensor that an index names must be in its file; one that it does not name is kept. Errors: usage (no such path),
  // damaged_checkpoint, unsupported_scheme (a GGUF file, pickled weights), runtime (the system's reason).
  static Result<Checkpoint> open(const std::string& path);

  const std::string& path() const;
  const std::vector<CheckpointFile>& files() const;
  const std::vector<TensorInfo>& tensors() const;       // in natural order of names
  const TensorInfo* find(std::string_view name) const;  // nullptr when there is none
  // Bytes of a tensor of this checkpoint. Error damaged_checkpoint (names the tensor) where the file has no data.
  Result<ByteView> bytes(const TensorInfo& tensor) const;
  // The text of a side file beside the tensors ("config.json", "hf_quant_config.json", ...); empty when there is none.
  const std::string& side_file(std::string_view name) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

// One tensor to write. `data` is borrowed until write_safetensors returns.
struct TensorToWrite {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  ByteView data;
};
// Writes one safetensors file: to a temporary file beside `path`, then renamed, so that no partly written file is ever
// seen under `path`. Tensors keep their order; offsets are contiguous; the header is padded to 8 bytes.
Result<void> write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors);

}  // namespace gearshift
