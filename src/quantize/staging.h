// A directory that comes into being at once: everything is written beside its final place and renamed at the end.
#pragma once

#include <filesystem>

#include "gearshift/base.h"

namespace gearshift::quantize_detail {

class StagedDirectory {
 public:
  // Makes a hidden directory beside `out`, and the parents of both. Errors usage: `out` exists and is not an empty
  // directory; runtime: the file system said no.
  static Result<StagedDirectory> create(const std::string& out);
  StagedDirectory(StagedDirectory&& other) noexcept
      : out_(std::move(other.out_)), path_(std::move(other.path_)), made_(std::move(other.made_)) {
    other.path_.clear();
    other.made_.clear();
  }
  StagedDirectory& operator=(StagedDirectory&&) = delete;
  ~StagedDirectory();  // removes what was not committed

  const std::string& path() const { return path_; }
  // Makes everything visible under `out`. Error runtime: `out` was taken meanwhile.
  Result<void> commit();

 private:
  explicit StagedDirectory(std::string out) : out_(std::move(out)) {}
  Result<void> make_parents(const std::filesystem::path& parent);

  std::string out_, path_;
  std::vector<std::string> made_;  // parents, outermost first
};

Result<void> write_text(const std::string& path, std::string_view text);
Result<void> rename_file(const std::string& from, const std::string& to);

// Copies what stands beside the weights of a model directory: tokenizer, generation settings, code, licence; one folder
// down too where modules.json says that modules have folders. Not weights in any format, not config.json, not an index
// of shards, nothing hidden.
Result<void> copy_side_files(const std::string& model_directory, const std::string& to);

}  // namespace gearshift::quantize_detail
