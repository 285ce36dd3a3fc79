// Any bytes as a safetensors file: an error of one line, or a table whose tensors lie side by side inside the file.
#include <cstdlib>

#include "checkpoint/safetensors.h"

using namespace gearshift;

namespace {
void require(bool condition) {
  if (!condition) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Result<SafetensorsTable> table = read_safetensors({data, size}, "input");
  if (!table.ok()) {
    require(exit_code(table.error().code) == 4);
    require(table.error().message().find('\n') == std::string::npos);
    return 0;
  }
  uint64_t end = table->tensors.empty() ? 0 : table->tensors[0].offset;
  for (const TensorInfo& tensor : table->tensors) {
    require(tensor.offset == end);
    require(stored_bytes(tensor.dtype, tensor.shape) == tensor.bytes);
    end += tensor.bytes;
  }
  require(table->tensors.empty() || (end == size) == table->has_data);
  return 0;
}
