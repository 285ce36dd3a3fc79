// What a file that is no safetensors file most likely is, from its first bytes.
#pragma once

#include <optional>

#include "gearshift/base.h"

namespace gearshift {

struct FileKind {
  std::string_view what;  // "a Git LFS pointer"
  std::string_view hint;  // what to do about it
  ErrorCode code = ErrorCode::damaged_checkpoint;
};
// nullopt: the bytes are of no kind that is known here.
std::optional<FileKind> kind_from_bytes(ByteView head);
// From the file's extension: a format of weights that is not loaded (.gguf, .bin, .pt ...), whatever is in it.
std::optional<FileKind> unsupported_from_name(std::string_view file_name);
// The first eight bytes (fewer, if there are fewer) as hexadecimal and as text.
std::string show_head(ByteView head);

}  // namespace gearshift
