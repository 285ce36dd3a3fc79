#include "quantize/staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <system_error>

#include "base/try.h"

namespace gearshift::quantize_detail {
namespace {

namespace fs = std::filesystem;

ErrorInfo file_error(const std::string& path, const std::error_code& code, std::string_view doing) {
  return {ErrorCode::runtime, path, code.message(), "", std::string(doing), {}};
}

ErrorInfo taken(const std::string& out) {
  return {ErrorCode::usage, out, "it exists", "a new or an empty directory", "choose another -o, or remove it", {}};
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
  if (!code && fs::exists(fs::symlink_status(target, code))) {
    if (!fs::is_directory(target, code) || !fs::is_empty(target, code) || code) return taken(out);
    target = fs::canonical(target, code);
  }
  StagedDirectory staged(target.string());
  code.clear();
  GEARSHIFT_CHECK(staged.make_parents(target.parent_path()));
  // Another name each time: what a killed process left behind is in nobody's way.
  std::random_device random;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const fs::path path = target.parent_path() / fmt::format(".gearshift-{:08x}.partial", random());
    if (fs::create_directory(path, code)) {
      staged.path_ = path.string();
      return staged;
    }
    if (code) return file_error(target.parent_path().string(), code, "while creating the output in it");
  }
  code = std::make_error_code(std::errc::file_exists);
  return file_error(target.parent_path().string(), code, "while creating the output in it");
}

Result<void> StagedDirectory::make_parents(const fs::path& parent) {
  std::vector<fs::path> missing;
  std::error_code code;
  for (fs::path path = parent; !fs::exists(path, code) && !code && path.has_relative_path(); path = path.parent_path())
    missing.push_back(path);
  for (auto path = missing.rbegin(); path != missing.rend() && !code; ++path) {
    if (fs::create_directory(*path, code)) made_.push_back(path->string());
  }
  if (!code && !fs::is_directory(parent, code) && !code) code = std::make_error_code(std::errc::not_a_directory);
  if (code) return file_error(parent.string(), code, "while creating the output's parent");
  return {};
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
  // Only what is empty goes.
  for (auto parent = made_.rbegin(); parent != made_.rend(); ++parent) fs::remove(*parent, ignored);
}

Result<void> StagedDirectory::commit() {
  // rename replaces an empty directory and refuses any other.
  std::error_code code;
  fs::rename(path_, out_, code);
  if (code == std::errc::directory_not_empty || code == std::errc::file_exists || code == std::errc::not_a_directory) {
    return ErrorInfo{ErrorCode::runtime,
                     out_,
                     "something was put there while the checkpoint was written",
                     "a new or an empty directory",
                     "run again with another -o",
                     {}};
  }
  if (code) return file_error(out_, code, "while giving the output its name");
  path_.clear();
  made_.clear();
  return {};
}

Result<void> write_text(const std::string& path, std::string_view text) {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file)
    return file_error(path, std::error_code(errno != 0 ? errno : EIO, std::generic_category()), "while writing it");
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
