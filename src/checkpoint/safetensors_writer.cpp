#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <unordered_set>

#include "base/text.h"
#include "base/try.h"
#include "base/utf8.h"
#include "checkpoint/safetensors.h"

namespace gearshift {
namespace {

// A file that is written under another name beside `path`, and takes that name only when it is complete. A symbolic
// link stays one: its target is replaced. What is there and no regular file (a pipe, /dev/null) is written to directly.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path) {
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
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (!direct_) ::unlink(temporary_.c_str());
  }

  Result<void> write(ByteView bytes) {
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

  // The data reaches the disk before the name does, so that a power cut leaves the old file or the new one.
  Result<void> finish() {
    if (error_ != 0) return failed(error_);
    if (direct_) return {};
    if (::fsync(fd_) != 0) return failed(errno);
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failed(errno);
    ::close(fd_);
    fd_ = -1;
    return {};
  }

 private:
  ErrorInfo failed(int error) const {
    return {ErrorCode::runtime,  path_, "the system's answer: " + std::generic_category().message(error),
            "to write the file", "",    {}};
  }

  std::string path_;
  std::string temporary_;
  bool direct_ = false;
  int fd_ = -1;
  int error_ = 0;
};

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<uint8_t>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character character = decode_utf8(text);
    if (!character.valid) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

Result<std::string> make_header(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  // Hugging Face transformers refuses a file that does not say which framework its tensors are laid out for.
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::unordered_set<std::string_view> names;
  uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const auto refuse = [&](const std::string& found, const std::string& wanted) {
      return ErrorInfo{ErrorCode::usage, path + ": " + tensor_called(tensor.name), found, wanted, "", {}};
    };
    if (tensor.name == "__metadata__") return refuse("a reserved name", "another one");
    if (!is_utf8(tensor.name)) return refuse("a name that is not UTF-8", "UTF-8");
    if (!names.insert(tensor.name).second) return refuse("the name twice", "every name once");
    const std::optional<uint64_t> size = stored_bytes(tensor.dtype, tensor.shape);
    const std::string what = fmt::format("{} {}", name(tensor.dtype), to_string(tensor.shape));
    if (!size) return refuse("shape " + what, "dimensions of 0 or more whose elements fill whole bytes");
    if (*size != tensor.data.size()) {
      return refuse(fmt::format("{} bytes of data", tensor.data.size()), fmt::format("{} bytes for {}", *size, what));
    }
    header += ',';
    append_json_string(header, tensor.name);
    header += fmt::format(R"(:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", name(tensor.dtype),
                          fmt::join(tensor.shape, ","), offset, offset + *size);
    offset += *size;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kSafetensorsHeaderLimit) {
    return ErrorInfo{ErrorCode::usage,
                     path,
                     fmt::format("a header of {} bytes", header.size()),
                     fmt::format("at most {}", kSafetensorsHeaderLimit),
                     "write the tensors to several files",
                     {}};
  }
  return header;
}

}  // namespace

Result<void> write_safetensors(const std::string& path, const std::vector<TensorToWrite>& tensors) {
  GEARSHIFT_TRY(const std::string header, make_header(path, tensors));
  std::array<uint8_t, 8> length{};
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<uint8_t>(header.size() >> (8 * i));
  TemporaryFile file(path);
  GEARSHIFT_CHECK(file.write(length));
  GEARSHIFT_CHECK(file.write({reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
  for (const TensorToWrite& tensor : tensors) GEARSHIFT_CHECK(file.write(tensor.data));
  return file.finish();
}

}  // namespace gearshift
