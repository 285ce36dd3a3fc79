// Files that are seen complete or not at all.
#pragma once

#include "gearshift/base.h"

namespace gearshift {

// A file that is written under another name beside `path`, and takes that name only when it is complete. A symbolic
// link stays one: its target is replaced. What is there and no regular file (a pipe, /dev/null) is written to directly.
class WholeFile {
 public:
  explicit WholeFile(const std::string& path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();  // without finish() nothing is left behind

  // Errors: runtime, with the system's answer.
  Result<void> write(ByteView bytes);
  Result<void> write(std::string_view text) {
    return write(ByteView(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }
  // The data reaches the disk before the name does, so that a power cut leaves the old file or the new one.
  Result<void> finish();

 private:
  ErrorInfo failed(int error) const;

  std::string path_;
  std::string temporary_;
  bool direct_ = false;
  int fd_ = -1;
  int error_ = 0;
};

Result<void> write_whole_file(const std::string& path, std::string_view text);

}  // namespace gearshift
