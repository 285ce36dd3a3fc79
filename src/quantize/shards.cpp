#include "quantize/shards.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.h"
#include "quantize/config.h"
#include "quantize/staging.h"

namespace gearshift::quantize_detail {

Result<void> ShardWriter::begin(uint64_t bytes) {
  if (!pending_.empty() && pending_bytes_ + bytes > shard_bytes_) GEARSHIFT_CHECK(flush());
  pending_bytes_ += bytes;
  total_bytes_ += bytes;
  return {};
}

Result<void> ShardWriter::add(const TensorInfo& tensor, ByteView data) {
  GEARSHIFT_CHECK(begin(data.size()));
  pending_.push_back({tensor.name, tensor.dtype, tensor.shape, data});
  return {};
}

Result<void> ShardWriter::add(std::vector<Made> tensors) {
  uint64_t bytes = 0;
  for (const Made& tensor : tensors) bytes += tensor.bytes.size();
  GEARSHIFT_CHECK(begin(bytes));
  for (Made& tensor : tensors) {
    owned_.push_back(std::move(tensor.bytes));
    pending_.push_back({std::move(tensor.name), tensor.dtype, std::move(tensor.shape), owned_.back()});
  }
  return {};
}

Result<void> ShardWriter::flush() {
  // Wide elements first, as the safetensors library does: then every tensor is aligned to its element.
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const TensorToWrite& a, const TensorToWrite& b) { return bits(a.dtype) > bits(b.dtype); });
  GEARSHIFT_CHECK(
      write_safetensors(fmt::format("{}/shard-{:05}.safetensors", directory_, written_.size() + 1), pending_));
  auto& names = written_.emplace_back();
  for (TensorToWrite& tensor : pending_) names.push_back(std::move(tensor.name));
  pending_.clear();
  owned_.clear();
  pending_bytes_ = 0;
  return {};
}

Result<void> ShardWriter::finish() {
  if (!pending_.empty() || written_.empty()) GEARSHIFT_CHECK(flush());
  std::string index = fmt::format("{{\n  \"metadata\": {{\"total_size\": {}}},\n  \"weight_map\": {{\n", total_bytes_);
  std::string_view separator;
  for (size_t shard = 0; shard < written_.size(); ++shard) {
    const std::string name = written_.size() == 1
                                 ? "model.safetensors"
                                 : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, written_.size());
    GEARSHIFT_CHECK(
        rename_file(fmt::format("{}/shard-{:05}.safetensors", directory_, shard + 1), directory_ + "/" + name));
    for (const std::string& tensor : written_[shard]) {
      index += fmt::format("{}    {}: \"{}\"", separator, json_string(tensor), name);
      separator = ",\n";
    }
  }
  if (written_.size() == 1) return {};
  return write_text(directory_ + "/model.safetensors.index.json", index + "\n  }\n}\n");
}

}  // namespace gearshift::quantize_detail
