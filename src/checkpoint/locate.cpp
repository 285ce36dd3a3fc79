#include "checkpoint/locate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "base/text.h"
#include "base/try.h"
#include "checkpoint/file_kind.h"
#include "base/mapped_file.h"

namespace gearshift {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeights = ".safetensors";
constexpr std::string_view kIndex = ".safetensors.index.json";
constexpr size_t kIndexBytes = 256 << 20;
constexpr size_t kNamesShown = 10;

ErrorInfo wrong_path(const std::string& path, const std::string& found) {
  return {ErrorCode::usage,
          path,
          found,
          "a directory with config.json and safetensors files, one .safetensors file, or a config.json",
          "check the path",
          {}};
}

ErrorInfo unsupported(const std::string& path, const FileKind& kind) {
  return {ErrorCode::unsupported_scheme, path, std::string(kind.what), "safetensors files", std::string(kind.hint), {}};
}

// Names of the files of a directory, in natural order. A directory, pipe or dangling link that is called like weights
// or an index counts, so that opening it says what is wrong with it.
Result<std::vector<std::string>> list_files(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    std::error_code ignored;  // a link that leads nowhere is no regular file
    std::string name = entry->path().filename().string();
    const bool wanted = name.ends_with(kWeights) || name.ends_with(kIndex);
    if (wanted || entry->is_regular_file(ignored)) names.push_back(std::move(name));
  }
  if (error) {
    return ErrorInfo{ErrorCode::runtime,     directory, "the system's answer: " + error.message(),
                     "a readable directory", "",        {}};
  }
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

// An index may only name files of its own directory or below.
bool stays_inside(const std::string& name) {
  const fs::path file(name);
  return !name.empty() && file.is_relative() && name.find('\0') == std::string::npos &&
         std::none_of(file.begin(), file.end(), [](const fs::path& part) { return part == ".."; });
}

Result<void> read_index(const std::string& directory, const std::string& name, CheckpointLocation& location) {
  location.index = directory + "/" + name;
  GEARSHIFT_TRY(const std::string text, read_text(location.index, kIndexBytes));
  GEARSHIFT_TRY(const Json index, parse_json(text, location.index));
  const auto refuse = [&](const std::string& found, const std::string& wanted) {
    return ErrorInfo{ErrorCode::damaged_checkpoint, location.index, found, wanted, "", {}};
  };
  const Json* map = index.find("weight_map");
  if (map == nullptr || !map->is(Json::Kind::object)) {
    return refuse(
        map == nullptr ? "no \"weight_map\"" : fmt::format("{} as \"weight_map\"", gearshift::name(map->kind)),
        "an object that maps each tensor to its file");
  }
  if (map->members.empty()) return refuse("an empty \"weight_map\"", "the file of each tensor");
  std::vector<std::string> missing;
  for (const auto& [tensor, file] : map->members) {
    if (!file.is(Json::Kind::string) || !stays_inside(file.string)) {
      const std::string found = file.is(Json::Kind::string) ? fmt::format("file \"{}\"", printable(file.string))
                                                            : std::string(gearshift::name(file.kind));
      return refuse(fmt::format("{} for tensor \"{}\"", found, printable(tensor)),
                    "the name of a file beside the index");
    }
    location.weight_map.emplace_back(tensor, directory + "/" + file.string);
    location.files.push_back(file.string);
  }
  std::sort(location.files.begin(), location.files.end(), natural_less);
  location.files.erase(std::unique(location.files.begin(), location.files.end()), location.files.end());
  for (std::string& file : location.files) {
    std::error_code ignored;
    if (!fs::exists(directory + "/" + file, ignored)) missing.push_back(file);
    file = directory + "/" + file;
  }
  if (missing.empty()) return {};
  ErrorInfo error = refuse(fmt::format("file \"{}\" named but missing{}", printable(missing[0]),
                                       missing.size() > 1 ? fmt::format(", and {} more", missing.size() - 1) : ""),
                           fmt::format("all {} files of the index", location.files.size()));
  error.hint = "download or copy the missing files";
  for (size_t i = 0; i < missing.size() && i < kNamesShown; ++i)
    error.details.push_back("missing: " + printable(missing[i]));
  return error;
}

Result<CheckpointLocation> locate_in_directory(const std::string& path) {
  CheckpointLocation location;
  location.directory = path;
  GEARSHIFT_TRY(const std::vector<std::string> names, list_files(path));
  const auto has = [&names](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };

  std::vector<std::string> indexes, weights;
  for (const std::string& name : names) {
    if (name.ends_with(kIndex)) indexes.push_back(name);
    if (name.ends_with(kWeights)) weights.push_back(name);
  }
  const std::string model_index = "model" + std::string(kIndex);
  if (has(model_index)) indexes = {model_index};
  if (indexes.size() == 1) {
    GEARSHIFT_CHECK(read_index(path, indexes[0], location));
    return location;
  }
  if (has("model.safetensors")) weights = {"model.safetensors"};
  for (const std::string& name : weights) location.files.push_back(path + "/" + name);
  if (!weights.empty()) return location;

  for (const std::string& name : names) {
    if (const std::optional<FileKind> kind = unsupported_from_name(name)) return unsupported(path + "/" + name, *kind);
  }
  if (has("config.json") || has("params.json") || has("hf_quant_config.json")) return location;
  return wrong_path(path, "a directory with neither");
}

}  // namespace

Result<CheckpointLocation> locate_checkpoint(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (path.find('\0') != std::string::npos || status.type() == fs::file_type::not_found) {
    return wrong_path(path, "no such file or directory");
  }
  if (error) {
    return ErrorInfo{ErrorCode::runtime, path, "the system's answer: " + error.message(), "a readable path", "", {}};
  }
  if (fs::is_directory(status)) {
    std::string directory = path;
    while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
    return locate_in_directory(directory);
  }
  if (!fs::is_regular_file(status)) return wrong_path(path, "a device, pipe or socket");

  const fs::path file(path);
  const std::string name = file.filename().string();
  CheckpointLocation location;
  location.directory = file.has_parent_path() ? file.parent_path().string() : ".";
  if (name.ends_with(kIndex)) {
    GEARSHIFT_CHECK(read_index(location.directory, name, location));
    return location;
  }
  if (name.ends_with(".json")) {
    // Files beside a configuration of another name belong to other models.
    if (name != "config.json" && name != "params.json" && name != "hf_quant_config.json") {
      location.directory.clear();
      location.config = path;
    }
    return location;
  }
  if (const std::optional<FileKind> kind = unsupported_from_name(name)) return unsupported(path, *kind);
  location.files.push_back(path);
  return location;
}

}  // namespace gearshift
