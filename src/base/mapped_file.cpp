#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "base/try.h"

namespace gearshift {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const auto failed = [&path](int error) {
    // A name that leads nowhere is the checkpoint's own damage; anything else is the machine's answer.
    const bool dangling = error == ENOENT || error == ELOOP;
    return ErrorInfo{dangling ? ErrorCode::damaged_checkpoint : ErrorCode::runtime,
                     path,
                     "the system's answer: " + std::generic_category().message(error),
                     "a readable file",
                     "",
                     {}};
  };
  // Without O_NONBLOCK, opening a named pipe would wait for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return failed(errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return failed(errno);
  if (!S_ISREG(status.st_mode)) {
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     path,
                     S_ISDIR(status.st_mode) ? "a directory" : "a device, pipe or socket",
                     "a file",
                     "",
                     {}};
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile(nullptr, 0);  // mmap refuses a length of 0
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return failed(errno);
  return MappedFile(static_cast<const uint8_t*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

Result<std::string> read_text(const std::string& path, size_t limit) {
  GEARSHIFT_TRY(const MappedFile file, MappedFile::open(path));
  const ByteView bytes = file.bytes();
  if (bytes.size() > limit) {
    return ErrorInfo{ErrorCode::damaged_checkpoint,    path, format_bytes(bytes.size()),
                     "at most " + format_bytes(limit), "",   {}};
  }
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace gearshift
