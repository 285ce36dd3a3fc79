#include "base/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/try.h"

namespace gearshift {

WholeFile::WholeFile(const std::string& path) : path_(path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    direct_ = true;
    fd_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) error_ = errno;
    return;
  }
  std::error_code ignored;
  if (const auto target = std::filesystem::canonical(path, ignored); !ignored) path_ = target.string();
  static std::atomic<uint64_t> counter{0};
  constexpr int kTries = 100;  // another process may have left files of the same number
  for (int i = 0; i < kTries && fd_ < 0; ++i) {
    temporary_ = fmt::format("{}.{}-{}.tmp", path_, ::getpid(), counter++);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0 && errno != EEXIST) break;
  }
  if (fd_ < 0) error_ = errno;
}

WholeFile::~WholeFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!direct_) ::unlink(temporary_.c_str());
}

Result<void> WholeFile::write(ByteView bytes) {
  if (error_ != 0) return failed(error_);
  constexpr size_t kChunk = size_t{1} << 30;  // Linux writes at most 2 GiB at once
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kChunk));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return failed(written < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Result<void> WholeFile::finish() {
  if (error_ != 0) return failed(error_);
  if (direct_) return {};
  if (::fsync(fd_) != 0) return failed(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(errno);
  ::close(fd_);
  fd_ = -1;
  return {};
}

ErrorInfo WholeFile::failed(int error) const {
  return {ErrorCode::runtime,  path_, "the system's answer: " + std::generic_category().message(error),
          "to write the file", "",    {}};
}

Result<void> write_whole_file(const std::string& path, std::string_view text) {
  WholeFile file(path);
  GEARSHIFT_CHECK(file.write(text));
  return file.finish();
}

}  // namespace gearshift
