#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "checkpoint/file_kind.h"
#include "checkpoint/safetensors.h"

namespace gearshift {
namespace {

// No format has more; a hostile shape of millions of ones is refused before it is kept.
constexpr size_t kDimensionsLimit = 64;
// Values of a header that is within its own limit: the shortest entry of a tensor takes some 50 bytes and 6 values.
constexpr JsonLimits kHeaderLimits{64, 20'000'000};

// Reads {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} into a table whose offsets still
// count from the end of the header. "__metadata__" and unknown members of a tensor are skipped whatever they hold.
class HeaderReader : public JsonEvents {
 public:
  bool scalar(Json& value) override {
    if (skipped_levels_ > 0) return true;
    switch (place_) {
      case Place::file:
        return refuse({"", std::string(name(value.kind)), "an object of tensors"});
      case Place::header:
        return metadata_ || refuse({tensor_called(tensor_.name), std::string(name(value.kind)), "an object"});
      case Place::tensor:
        return member(value);
      case Place::numbers:
        return number(value);
    }
    return false;
  }

  bool begin_object() override { return begin(Json::Kind::object); }
  bool begin_array() override { return begin(Json::Kind::array); }

  bool key(std::string& key) override {
    if (skipped_levels_ > 0) return true;
    if (place_ == Place::header) {
      metadata_ = key == "__metadata__";
      if (metadata_ && std::exchange(metadata_seen_, true)) {
        return refuse({"", "\"__metadata__\" twice", "every name once"});
      }
      tensor_.name = std::move(key);
      return true;
    }
    member_ = key == "dtype"          ? Member::dtype
              : key == "shape"        ? Member::shape
              : key == "data_offsets" ? Member::data_offsets
                                      : Member::unknown;
    if (member_ != Member::unknown && std::exchange(seen_[static_cast<size_t>(member_)], true)) {
      return refuse({tensor_called(tensor_.name), fmt::format("\"{}\" twice", key), "every member once"});
    }
    return true;
  }

  bool end_object() override {
    if (skipped_levels_ > 0) return leave_skipped();
    if (place_ == Place::header) {
      place_ = Place::file;
      return true;
    }
    place_ = Place::header;
    return finish_tensor();
  }

  bool end_array() override {
    if (skipped_levels_ > 0) return leave_skipped();
    place_ = Place::tensor;
    if (member_ == Member::shape) {
      tensor_.shape = numbers_;
      return true;
    }
    if (numbers_.size() != 2 || numbers_[0] < 0 || numbers_[0] > numbers_[1]) {
      return refuse(
          {tensor_called(tensor_.name), "data_offsets " + to_string(numbers_), "[begin, end] with 0 <= begin <= end"});
    }
    tensor_.offset = static_cast<uint64_t>(numbers_[0]);
    tensor_.bytes = static_cast<uint64_t>(numbers_[1] - numbers_[0]);
    return true;
  }

  std::vector<TensorInfo>& tensors() { return tensors_; }

 private:
  enum class Place : uint8_t { file, header, tensor, numbers };
  enum class Member : uint8_t { dtype, shape, data_offsets, unknown };
  static constexpr std::array<std::string_view, 3> kMembers = {"dtype", "shape", "data_offsets"};

  bool begin(Json::Kind kind) {
    if (skipped_levels_ > 0 || (place_ == Place::header && metadata_) ||
        (place_ == Place::tensor && member_ == Member::unknown)) {
      ++skipped_levels_;
      return true;
    }
    const std::string found(name(kind));
    switch (place_) {
      case Place::file:
        if (kind != Json::Kind::object) return refuse({"", "an " + found, "an object of tensors"});
        place_ = Place::header;
        return true;
      case Place::header:
        if (kind != Json::Kind::object) return refuse({tensor_called(tensor_.name), "an " + found, "an object"});
        place_ = Place::tensor;
        seen_ = {};
        return true;
      case Place::tensor:
        if (kind != Json::Kind::array || member_ == Member::dtype) return wrong_member("an " + found);
        place_ = Place::numbers;
        numbers_.clear();
        return true;
      case Place::numbers:
        return wrong_member("an " + found + " inside");
    }
    return false;
  }

  bool leave_skipped() {
    --skipped_levels_;
    return true;
  }

  bool wrong_member(const std::string& found) {
    return refuse({tensor_called(tensor_.name),
                   fmt::format("{} as \"{}\"", found, kMembers[static_cast<size_t>(member_)]),
                   member_ == Member::dtype ? "the name of an element type" : "an array of integers"});
  }

  bool member(const Json& value) {
    if (member_ == Member::unknown) return true;
    if (member_ != Member::dtype || value.kind != Json::Kind::string)
      return wrong_member(std::string(name(value.kind)));
    const std::optional<DType> dtype = parse_dtype(value.string);
    if (!dtype) {
      return refuse({tensor_called(tensor_.name), fmt::format("dtype \"{}\"", printable(value.string, 40)),
                     "a dtype of the safetensors format (F32, BF16, F8_E4M3, U8 ...)"});
    }
    tensor_.dtype = *dtype;
    return true;
  }

  bool number(const Json& value) {
    if (value.kind != Json::Kind::integer) {
      const bool large = value.kind == Json::Kind::number;
      return wrong_member(large ? fmt::format("{}", value.number) : std::string(name(value.kind)));
    }
    if (numbers_.size() == kDimensionsLimit) {
      return wrong_member(fmt::format("more than {} numbers", kDimensionsLimit));
    }
    numbers_.push_back(value.integer);
    return true;
  }

  bool finish_tensor() {
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (!seen_[i]) return refuse({tensor_called(tensor_.name), fmt::format("no \"{}\"", kMembers[i]), "one"});
    }
    const std::optional<uint64_t> size = stored_bytes(tensor_.dtype, tensor_.shape);
    const std::string what = fmt::format("{} {}", name(tensor_.dtype), to_string(tensor_.shape));
    if (!size) {
      return refuse(
          {tensor_called(tensor_.name), "shape " + what, "dimensions of 0 or more whose elements fill whole bytes"});
    }
    if (*size != tensor_.bytes) {
      return refuse({tensor_called(tensor_.name),
                     fmt::format("{} bytes by data_offsets [{}, {}]", tensor_.bytes, tensor_.offset,
                                 tensor_.offset + tensor_.bytes),
                     fmt::format("{} bytes for {}", *size, what)});
    }
    tensors_.push_back(std::move(tensor_));
    tensor_ = TensorInfo{};
    return true;
  }

  Place place_ = Place::file;
  size_t skipped_levels_ = 0;  // open containers of a part that is skipped
  bool metadata_ = false;      // the current member of the header is "__metadata__"
  bool metadata_seen_ = false;
  Member member_ = Member::unknown;
  std::array<bool, 3> seen_{};
  Shape numbers_;
  TensorInfo tensor_;
  std::vector<TensorInfo> tensors_;
};

// Puts the tensors in the order of their data and checks that they follow one another without overlap or hole.
Result<uint64_t> check_layout(std::vector<TensorInfo>& tensors, const std::string& subject) {
  const auto before = [](const TensorInfo& a, const TensorInfo& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  };
  if (!std::is_sorted(tensors.begin(), tensors.end(), before)) {
    std::stable_sort(tensors.begin(), tensors.end(), before);
  }
  uint64_t end = 0;
  const TensorInfo* previous = nullptr;
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset != end) {
      const std::string where =
          previous == nullptr ? "the start of the data" : fmt::format("the end of {}", tensor_called(previous->name));
      return ErrorInfo{ErrorCode::damaged_checkpoint,
                       fmt::format("{}: {}", subject, tensor_called(tensor.name)),
                       fmt::format("data from byte {} on, which leaves {}", tensor.offset,
                                   tensor.offset > end ? "a hole" : "an overlap"),
                       fmt::format("from byte {} on, {}", end, where),
                       "",
                       {}};
    }
    end += tensor.bytes;
    previous = &tensor;
  }
  return end;
}

// The JSON text of the header, or why these bytes are no safetensors file.
Result<std::string_view> find_header(ByteView file, const std::string& subject) {
  const std::optional<FileKind> kind = kind_from_bytes(file);
  const auto refuse = [&](const std::string& found, const std::string& wanted, const std::string& hint) {
    if (kind) {
      return ErrorInfo{kind->code,
                       subject,
                       fmt::format("{}, by its first bytes {}", kind->what, show_head(file)),
                       "a safetensors file",
                       std::string(kind->hint),
                       {}};
    }
    return ErrorInfo{ErrorCode::damaged_checkpoint, subject, found, wanted, hint, {}};
  };
  if (file.empty()) return refuse("an empty file", "a safetensors file", "download or copy it again");
  if (file.size() < 8) {
    return refuse(fmt::format("{} bytes, {}", file.size(), show_head(file)), "a safetensors file, of at least 10 bytes",
                  "download or copy it again");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= static_cast<uint64_t>(file[i]) << (8 * i);
  if (length > kSafetensorsHeaderLimit) {
    return refuse(fmt::format("a header of {} bytes, by the first 8 bytes {}", length, show_head(file)),
                  fmt::format("at most {} bytes, the limit of the safetensors format", kSafetensorsHeaderLimit),
                  "this is no safetensors file, or its start is damaged");
  }
  if (length > file.size() - 8) {
    return refuse(fmt::format("a header of {} bytes in a file of {} bytes", length, file.size()),
                  fmt::format("a file of at least {} bytes", 8 + length),
                  "the file is incomplete: download or copy it again");
  }
  if (length == 0 || file[8] != '{') {
    return refuse(fmt::format("a header that starts with {}", show_head(file.subspan(8))), "JSON, starting with \"{\"",
                  "this is no safetensors file, or its header is damaged");
  }
  return std::string_view(reinterpret_cast<const char*>(file.data()) + 8, length);
}

}  // namespace

std::string tensor_called(std::string_view name) { return fmt::format("tensor \"{}\"", printable(name)); }

std::optional<uint64_t> stored_bytes(DType dtype, const Shape& shape) {
  uint64_t elements = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 0 || __builtin_mul_overflow(elements, static_cast<uint64_t>(dimension), &elements)) {
      return std::nullopt;
    }
  }
  uint64_t total_bits = 0;
  if (__builtin_mul_overflow(elements, static_cast<uint64_t>(bits(dtype)), &total_bits) || total_bits % 8 != 0) {
    return std::nullopt;
  }
  return total_bits / 8;
}

Result<SafetensorsTable> read_safetensors(ByteView file, const std::string& subject) {
  GEARSHIFT_TRY(const std::string_view header, find_header(file, subject));
  HeaderReader reader;
  GEARSHIFT_CHECK(parse_json_events(header, subject, reader, kHeaderLimits));
  SafetensorsTable table;
  table.tensors = std::move(reader.tensors());
  GEARSHIFT_TRY(const uint64_t wanted, check_layout(table.tensors, subject));
  const uint64_t data_begin = 8 + header.size();
  const uint64_t present = file.size() - data_begin;
  table.has_data = wanted == present;
  if (present != 0 && present < wanted) {
    const auto cut = std::find_if(table.tensors.begin(), table.tensors.end(),
                                  [&](const TensorInfo& tensor) { return tensor.offset + tensor.bytes > present; });
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     fmt::format("{}: {}", subject, tensor_called(cut->name)),
                     fmt::format("a file of {} bytes, which ends inside its data", file.size()),
                     fmt::format("{} bytes", data_begin + wanted),
                     "the file is incomplete: download or copy it again",
                     {}};
  }
  if (present > wanted) {
    return ErrorInfo{ErrorCode::damaged_checkpoint,
                     subject,
                     fmt::format("{} bytes after the last tensor", present - wanted),
                     fmt::format("a file of {} bytes", data_begin + wanted),
                     "header and data do not belong together, or something was appended",
                     {}};
  }
  for (TensorInfo& tensor : table.tensors) tensor.offset += data_begin;
  return table;
}

}  // namespace gearshift
