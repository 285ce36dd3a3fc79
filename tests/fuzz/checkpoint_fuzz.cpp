// Any config with any header, through every scheme's reader: an error of one line, or layers whose weights bind to
// bytes inside the file or are refused with one line. Input: a config.json, a zero byte, the JSON of a safetensors
// header, and, behind another zero byte, a pattern that fills the data.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "gearshift/checkpoint.h"
#include "gearshift/layer.h"
#include "gearshift/prepare.h"

using namespace gearshift;

namespace {

constexpr uint64_t max_data_bytes = 1 << 18;
constexpr int64_t max_experts = 4;

void require(bool condition) {
  if (!condition) std::abort();
}

// A directory in memory that goes with the process.
struct Folder {
  std::string path;
  Folder() {
    char pattern[] = "/dev/shm/gearshift-fuzz-XXXXXX";
    require(mkdtemp(pattern) != nullptr);
    path = pattern;
  }
  ~Folder() {
    for (const char* name : {"/config.json", "/model.safetensors"}) unlink((path + name).c_str());
    rmdir(path.c_str());
  }
  void write(const std::string& name, std::string_view head, std::string_view text, std::string_view data) const {
    std::FILE* file = std::fopen((path + "/" + name).c_str(), "wb");
    require(file != nullptr);
    for (std::string_view part : {head, text, data}) std::fwrite(part.data(), 1, part.size(), file);
    std::fclose(file);
  }
};

bool one_line(const ErrorInfo& error) {
  const std::string message = error.message();
  return !message.empty() && message.find('\n') == std::string::npos;
}

std::string_view take(std::string_view& input) {
  const size_t end = input.find('\0');
  const std::string_view part = input.substr(0, end);
  input.remove_prefix(end == std::string_view::npos ? input.size() : end + 1);
  return part;
}

uint64_t data_bytes(const Checkpoint& checkpoint) {
  uint64_t begin = checkpoint.tensors().empty() ? 0 : UINT64_MAX, end = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    begin = std::min(begin, tensor.offset);
    end = std::max(end, tensor.offset + tensor.bytes);
  }
  return end - begin;
}

void bind_all(const Checkpoint& checkpoint, const std::vector<LayerSpec>& layers) {
  for (const LayerSpec& layer : layers) {
    const int64_t count = std::clamp<int64_t>(layer.experts, 1, max_experts);
    for (int64_t expert = 0; expert < count; ++expert) {
      std::vector<std::string> notes;
      const auto weights = bind_weights(checkpoint, layer, expert, &notes);
      for (const std::string& note : notes) require(!note.empty() && note.find('\n') == std::string::npos);
      if (!weights) {
        require(one_line(weights.error()));
        continue;
      }
      // Every byte of every view can be read.
      uint64_t sum = 0;
      for (const PartWeights& part : weights->parts)
        for (ByteView view : {part.weight, part.scale, part.zero_point, part.group_index, part.pre_scale, part.bias})
          for (uint8_t byte : view) sum += byte;
      require(sum != UINT64_MAX);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  static const Folder folder;
  std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const std::string_view config = take(input), header = take(input), pattern = input;
  const uint64_t length = header.size();
  const std::string_view head(reinterpret_cast<const char*>(&length), sizeof length);
  folder.write("config.json", "", config, "");
  folder.write("model.safetensors", head, header, "");

  const auto checkpoint = Checkpoint::open(folder.path);
  if (!checkpoint) return require(one_line(checkpoint.error())), 0;
  const auto strict = read_layers(*checkpoint);
  if (!strict) require(one_line(strict.error()));
  const auto model = read_layers(*checkpoint, true);
  if (!model) return require(one_line(model.error())), 0;
  const std::vector<LayerSpec> rows = fuse(model->layers);
  require(rows.size() <= model->layers.size());
  for (const LayerSpec& row : rows) require(row.n >= 0 && row.k >= 0 && !layer_class(row).empty());

  const uint64_t needed = data_bytes(*checkpoint);
  if (needed == 0 || needed > max_data_bytes) return 0;
  std::string data(needed, '\x38');
  for (size_t i = 0; i < data.size() && !pattern.empty(); ++i) data[i] = pattern[i % pattern.size()];
  folder.write("model.safetensors", head, header, data);
  const auto filled = Checkpoint::open(folder.path);
  require(filled.ok());
  bind_all(*filled, rows);
  bind_all(*filled, model->layers);
  return 0;
}
