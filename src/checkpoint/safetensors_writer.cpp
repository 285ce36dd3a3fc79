#include <fmt/format.h>

#include <array>
#include <unordered_set>

#include "base/text.h"
#include "base/try.h"
#include "base/utf8.h"
#include "base/whole_file.h"
#include "checkpoint/safetensors.h"

namespace gearshift {
namespace {

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
  WholeFile file(path);
  GEARSHIFT_CHECK(file.write(length));
  GEARSHIFT_CHECK(file.write({reinterpret_cast<const uint8_t*>(header.data()), header.size()}));
  for (const TensorToWrite& tensor : tensors) GEARSHIFT_CHECK(file.write(tensor.data));
  return file.finish();
}

}  // namespace gearshift
