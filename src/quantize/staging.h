// A directory that comes into being at once: everything is written beside its final place and renamed at the end.
#pragma once

#include "gearshift/base.h"

namespace gearshift::quantize_detail {

class StagedDirectory {
 public:
  // Makes a hidden directory beside `out` (".NAME.partial-PID"). Errors usage: `out` exists and is not an empty
  // directory; runtime: the file system said no.
  static Result<StagedDirectory> create(const std::string& out);
  StagedDirectory(StagedDirectory&& other) noexcept : out_(std::move(other.out_)), path_(std::move(other.path_)) {
    other.path_.clear();
  }
  StagedDirectory& operator=(StagedDirectory&&) = delete;
  ~StagedDirectory();  // removes what was not committed

  const std::string& path() const { return path_; }
  // Makes everything visible under `out`.
  Result<void> commit();

 private:
  StagedDirectory(std::string out, std::string path) : out_(std::move(out)), path_(std::move(path)) {}
  std::string out_, path_;
};

Result<void> write_text(const std::string& path, std::string_view text);
Result<void> rename_file(const std::string& from, const std::string& to);

// Copies what stands beside the weights of a model directory: tokenizer, generation settings, code, licence; one folder
// down too where modules.json says that modules have folders. Not weights in any format, not config.json, not an index
// of shards, nothing hidden.
Result<void> copy_side_files(const std::string& model_directory, const std::string& to);

}  // namespace gearshift::quantize_detail
