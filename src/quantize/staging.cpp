#include "quantize/staging.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/try.h"

namespace gearshift::quantize_detail {
namespace {

namespace fs = std::filesystem;

ErrorInfo file_error(const std::string& path, const std::error_code& code, std::string_view doing) {
  return {ErrorCode::runtime, path, code.message(), "", std::string(doing), {}};
}

// Larger files are weights under a name that says so to nobody.
constexpr uintmax_t largest_side_file = uintmax_t{64} << 20;
constexpr std::array<std::string_view, 14> weight_endings{".safetensors", ".bin",  ".pt",        ".pth",       ".ckpt",
                                                          ".gguf",        ".onnx", ".h5",        ".msgpack",   ".ot",
                                                          ".tflite",      ".npz",  ".onnx_data", ".index.json"};

bool is_side_file(const fs::directory_entry& entry, bool top) {
  const std::string name = entry.path().filename().string();
  std::error_code code;
  if (name.starts_with('.') || (top && name == "config.json") || !entry.is_regular_file(code)) return false;
  if (std::any_of(weight_endings.begin(), weight_endings.end(),
                  [&](std::string_view e) { return name.ends_with(e); })) {
    return false;
  }
  const uintmax_t size = entry.file_size(code);
  return !code && size <= largest_side_file;
}

Result<void> copy_files(const fs::path& from, const fs::path& to, bool top) {
  std::error_code code;
  const bool folders = top && fs::exists(from / "modules.json", code);  // sentence-transformers: a folder a module
  fs::directory_iterator entries(from, code);
  if (code) return file_error(from.string(), code, "while listing the model");
  for (const fs::directory_entry& entry : entries) {
    if (is_side_file(entry, top)) {
      fs::create_directories(to, code);
      if (!code) fs::copy_file(entry.path(), to / entry.path().filename(), code);
      if (code) return file_error(entry.path().string(), code, "while copying it beside the weights");
    } else if (folders && entry.is_directory(code) && !entry.is_symlink(code) &&
               !entry.path().filename().string().starts_with('.')) {
      GEARSHIFT_CHECK(copy_files(entry.path(), to / entry.path().filename(), false));
    }
  }
  return {};
}

}  // namespace

Result<StagedDirectory> StagedDirectory::create(const std::string& out) {
  if (out.empty()) return ErrorInfo{ErrorCode::usage, "-o", "nothing", "a directory to create", "", {}};
  std::error_code code;
  fs::path target = fs::absolute(out, code).lexically_normal();
  if (!code && !target.has_filename()) target = target.parent_path();  // a trailing slash
  const fs::file_status status = code ? fs::file_status() : fs::status(target, code);
  if (fs::exists(status)) {
    const bool free = fs::is_directory(status) && fs::is_empty(target, code) && !code;
    if (!free)
      return ErrorInfo{
          ErrorCode::usage, out, "it exists", "a new or an empty directory", "choose another -o, or remove it", {}};
    target = fs::canonical(target, code);
  }
  code.clear();
  fs::create_directories(target.parent_path(), code);
  if (code) return file_error(target.parent_path().string(), code, "while creating the output's parent");
  const fs::path staging =
      target.parent_path() / ("." + target.filename().string() + ".partial-" + std::to_string(::getpid()));
  if (!fs::create_directory(staging, code)) {
    if (!code) code = std::make_error_code(std::errc::file_exists);
    return file_error(staging.string(), code, "while creating the output");
  }
  return StagedDirectory(target.string(), staging.string());
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

Result<void> StagedDirectory::commit() {
  // rename replaces an empty directory and refuses any other.
  GEARSHIFT_CHECK(rename_file(path_, out_));
  path_.clear();
  return {};
}

Result<void> write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return file_error(path, std::error_code(errno, std::generic_category()), "while writing it");
  return {};
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  std::error_code code;
  fs::rename(from, to, code);
  if (code) return file_error(to, code, "while giving it its name");
  return {};
}

Result<void> copy_side_files(const std::string& model_directory, const std::string& to) {
  return copy_files(model_directory, to, true);
}

}  // namespace gearshift::quantize_detail
