#include "checkpoint/in_memory.h"

#include <fmt/format.h>

#include "checkpoint/safetensors.h"

namespace gearshift {
namespace {

thread_local std::unique_ptr<MemoryFiles> handed_over;

}  // namespace

std::unique_ptr<MemoryFiles> take_memory_files() { return std::move(handed_over); }

Result<Checkpoint> checkpoint_in_memory(const std::string& label, const std::vector<MemoryTensor>& tensors,
                                        std::map<std::string, std::string, std::less<>> side_files) {
  auto files = std::make_unique<MemoryFiles>();
  files->label = label;
  files->side_files = std::move(side_files);
  size_t total = 0;
  for (const MemoryTensor& tensor : tensors) total += tensor.data.size();
  files->data.reserve(total);
  for (const MemoryTensor& tensor : tensors) {
    const std::optional<uint64_t> bytes = stored_bytes(tensor.dtype, tensor.shape);
    if (!bytes || *bytes != tensor.data.size()) {
      return ErrorInfo{ErrorCode::usage,
                       fmt::format("{}: {}", label, tensor_called(tensor.name)),
                       fmt::format("{} bytes", tensor.data.size()),
                       fmt::format("those of {} {}", name(tensor.dtype), to_string(tensor.shape)),
                       "",
                       {}};
    }
    files->tensors.push_back({tensor.name, tensor.dtype, tensor.shape, 0, files->data.size(), *bytes});
    files->data.insert(files->data.end(), tensor.data.begin(), tensor.data.end());
  }
  handed_over = std::move(files);
  return Checkpoint::open(label);
}

}  // namespace gearshift
