// safetensors files of a growing checkpoint: one file while it is small, else shards with an index. Holds the data of
// one shard at a time.
#pragma once

#include <cstdint>

#include "gearshift/checkpoint.h"

namespace gearshift::quantize_detail {

class ShardWriter {
 public:
  static constexpr uint64_t default_shard_bytes = uint64_t{2} << 30;
  explicit ShardWriter(std::string directory, uint64_t shard_bytes = default_shard_bytes)
      : directory_(std::move(directory)), shard_bytes_(shard_bytes) {}

  // A tensor that lives in the input checkpoint: borrowed until finish().
  Result<void> add(const TensorInfo& tensor, ByteView data);
  // Tensors made here, which stay in one shard.
  struct Made {
    std::string name;
    DType dtype = DType::u8;
    Shape shape;
    std::vector<uint8_t> bytes;
  };
  Result<void> add(std::vector<Made> tensors);
  // Writes the last shard, gives the files their final names and writes the index where there are several.
  Result<void> finish();

 private:
  Result<void> begin(uint64_t bytes);  // makes room
  Result<void> flush();

  std::string directory_;
  uint64_t shard_bytes_, pending_bytes_ = 0, total_bytes_ = 0;
  std::vector<TensorToWrite> pending_;
  std::vector<std::vector<uint8_t>> owned_;
  std::vector<std::vector<std::string>> written_;  // names of each shard's tensors
};

}  // namespace gearshift::quantize_detail
