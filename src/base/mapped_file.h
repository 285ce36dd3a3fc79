// A file mapped read-only for as long as the object lives.
#pragma once

#include "gearshift/base.h"

namespace gearshift {

class MappedFile {
 public:
  // Maps the file as long as it is now. Errors: damaged_checkpoint (no regular file), runtime (the system's reason).
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  ByteView bytes() const { return {data_, size_}; }

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// The whole text of a small file. Errors: as above, and damaged_checkpoint where it has more than `limit` bytes.
Result<std::string> read_text(const std::string& path, size_t limit);

}  // namespace gearshift
