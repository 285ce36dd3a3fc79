#include "gearshift/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "base/try.h"
#include "checkpoint/locate.h"
#include "base/mapped_file.h"
#include "checkpoint/in_memory.h"
#include "checkpoint/safetensors.h"

namespace gearshift {
namespace {

// Files beside the tensors in which writers of checkpoints say what the tensors mean.
constexpr std::array<const char*, 7> kSideFiles = {
    "config.json",    "hf_quant_config.json", "quantize_config.json", "quant_config.json", "quantization_config.json",
    "quant_cfg.json", "params.json"};
constexpr size_t kSideFileBytes = 64 << 20;

const std::string kNone;

Result<std::map<std::string, std::string, std::less<>>> read_side_files(const CheckpointLocation& location) {
  std::map<std::string, std::string, std::less<>> texts;
  if (!location.config.empty()) {
    GEARSHIFT_TRY(texts["config.json"], read_text(location.config, kSideFileBytes));
  }
  if (location.directory.empty()) return texts;
  for (const char* name : kSideFiles) {
    const std::string path = location.directory + "/" + name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    GEARSHIFT_TRY(texts[name], read_text(path, kSideFileBytes));
  }
  return texts;
}

}  // namespace

struct Checkpoint::State {
  std::string path;
  std::vector<CheckpointFile> files;
  std::vector<MappedFile> mappings;  // of `files`, one each; none for a checkpoint in memory
  std::vector<uint8_t> memory;       // the data of such a one
  std::vector<TensorInfo> tensors;
  std::map<std::string, std::string, std::less<>> side_files;

  const TensorInfo* find(std::string_view name) const {
    const auto at =
        std::lower_bound(tensors.begin(), tensors.end(), name,
                         [](const TensorInfo& tensor, std::string_view n) { return natural_less(tensor.name, n); });
    return at != tensors.end() && at->name == name ? &*at : nullptr;
  }

  Result<void> add_file(const std::string& file_path) {
    GEARSHIFT_TRY(MappedFile mapping, MappedFile::open(file_path));
    GEARSHIFT_TRY(SafetensorsTable table, read_safetensors(mapping.bytes(), file_path));
    for (TensorInfo& tensor : table.tensors) {
      tensor.file = static_cast<int>(files.size());
      tensors.push_back(std::move(tensor));
    }
    files.push_back({file_path, table.has_data});
    mappings.push_back(std::move(mapping));
    return {};
  }

  Result<void> sort_tensors() {
    const auto before = [](const TensorInfo& a, const TensorInfo& b) { return natural_less(a.name, b.name); };
    if (!std::is_sorted(tensors.begin(), tensors.end(), before)) {
      // Names are sorted instead of the tensors, which are costly to move and to look into.
      std::vector<std::pair<std::string_view, size_t>> order;
      order.reserve(tensors.size());
      for (const TensorInfo& tensor : tensors) order.emplace_back(tensor.name, order.size());
      std::sort(order.begin(), order.end(),
                [](const auto& a, const auto& b) { return natural_less(a.first, b.first); });
      std::vector<TensorInfo> sorted;
      sorted.reserve(tensors.size());
      for (const auto& [name, i] : order) sorted.push_back(std::move(tensors[i]));
      tensors = std::move(sorted);
    }
    const auto twice = std::adjacent_find(tensors.begin(), tensors.end(),
                                          [](const TensorInfo& a, const TensorInfo& b) { return a.name == b.name; });
    if (twice == tensors.end()) return {};
    const std::string& first = files[static_cast<size_t>(twice->file)].path;
    const std::string& second = files[static_cast<size_t>(std::next(twice)->file)].path;
    ErrorInfo error{
        ErrorCode::damaged_checkpoint, first + ": " + tensor_called(twice->name), "", "every tensor once", "", {}};
    error.found = first == second ? "the name twice in the header" : "the same name in " + second;
    if (first != second) error.hint = "remove the file that does not belong to this checkpoint";
    return error;
  }

  // Every tensor of the index must be where it says. Tensors that the index does not know are kept: those who load
  // whole files see them too.
  Result<void> check_index(const CheckpointLocation& location) const {
    for (const auto& [name, file] : location.weight_map) {
      const TensorInfo* tensor = find(name);
      if (tensor != nullptr && files[static_cast<size_t>(tensor->file)].path == file) continue;
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       fmt::format("{}: {}", location.index, tensor_called(name)),
                       tensor == nullptr ? fmt::format("no such tensor in {}", file)
                                         : fmt::format("it in {}", files[static_cast<size_t>(tensor->file)].path),
                       fmt::format("it in {}, as the index says", file),
                       "index and files are of different versions: download both again",
                       {}};
    }
    return {};
  }
};

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  if (const std::unique_ptr<MemoryFiles> given = take_memory_files()) {
    auto in_memory = std::make_shared<State>();
    in_memory->path = given->label;
    in_memory->files.push_back({given->label, true});
    in_memory->tensors = std::move(given->tensors);
    in_memory->memory = std::move(given->data);
    in_memory->side_files = std::move(given->side_files);
    if (Result<void> sorted = in_memory->sort_tensors(); !sorted.ok()) {
      ErrorInfo error = sorted.error();
      error.code = ErrorCode::usage;
      return error;
    }
    Checkpoint checkpoint;
    checkpoint.state_ = std::move(in_memory);
    return checkpoint;
  }
  GEARSHIFT_TRY(const CheckpointLocation location, locate_checkpoint(path));
  auto state = std::make_shared<State>();
  state->path = path;
  GEARSHIFT_TRY(state->side_files, read_side_files(location));
  for (const std::string& file : location.files) GEARSHIFT_CHECK(state->add_file(file));
  GEARSHIFT_CHECK(state->sort_tensors());
  GEARSHIFT_CHECK(state->check_index(location));
  Checkpoint checkpoint;
  checkpoint.state_ = std::move(state);
  return checkpoint;
}

const std::string& Checkpoint::path() const { return state_->path; }

const std::vector<CheckpointFile>& Checkpoint::files() const { return state_->files; }

const std::vector<TensorInfo>& Checkpoint::tensors() const { return state_->tensors; }

const TensorInfo* Checkpoint::find(std::string_view name) const { return state_->find(name); }

Result<ByteView> Checkpoint::bytes(const TensorInfo& tensor) const {
  const auto refuse = [&](const std::string& where, const std::string& found, const std::string& wanted,
                          const std::string& hint) {
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     fmt::format("{}: {}", where, tensor_called(tensor.name)),
                     found,
                     wanted,
                     hint,
                     {}};
  };
  if (tensor.file < 0 || static_cast<size_t>(tensor.file) >= state_->files.size()) {
    return refuse(state_->path, fmt::format("file number {}", tensor.file), "a tensor of this checkpoint", "");
  }
  const auto file = static_cast<size_t>(tensor.file);
  if (!state_->files[file].has_data) {
    return refuse(state_->files[file].path, "a file that ends right after its header", "the tensor's data",
                  "get the whole file; a header alone is enough to plan, not to run");
  }
  const ByteView all = state_->mappings.empty() ? ByteView(state_->memory) : state_->mappings[file].bytes();
  if (tensor.offset > all.size() || tensor.bytes > all.size() - tensor.offset) {
    return refuse(state_->files[file].path, fmt::format("{} bytes from byte {} on", tensor.bytes, tensor.offset),
                  fmt::format("a range inside the {} bytes of the file", all.size()), "");
  }
  return all.subspan(tensor.offset, tensor.bytes);
}

const std::string& Checkpoint::side_file(std::string_view name) const {
  const auto at = state_->side_files.find(name);
  return at == state_->side_files.end() ? kNone : at->second;
}

}  // namespace gearshift
