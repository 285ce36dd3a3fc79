// gearshift.toml: options by name. Untrusted text; every error names file and line.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 16
#include <fmt/format.h>

#include <toml++/toml.h>
#include <filesystem>

#include "base/mapped_file.h"
#include "base/text.h"
#include "base/try.h"
#include "gearshift/pipeline.h"

namespace gearshift {

namespace {

constexpr size_t kLongestFile = 1 << 20;

ErrorInfo wrong(std::string where, std::string found, std::string wanted, std::string hint = "") {
  return {ErrorCode::usage, std::move(where), std::move(found), std::move(wanted), std::move(hint), {}};
}

std::string place(const std::string& path, const toml::source_region& source) {
  return fmt::format("{}:{}", printable(path), source.begin.line);
}

std::string_view kind_word(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a text";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number with a fraction";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

// Texts, whole numbers and truth values, as the command line would have them.
std::optional<std::string> as_text(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "1" : "0";
  return std::nullopt;
}

ErrorInfo unknown_key(const std::string& where, std::string_view key) {
  std::vector<std::string_view> names;
  for (const OptionSpec& spec : all_options()) names.push_back(spec.name);
  const std::vector<std::string> near = near_names(key, names);
  return wrong(where, fmt::format("the unknown key '{}'", printable(key)), "an option of `gearshift --help`",
               near.empty() ? "" : fmt::format("did you mean {}?", join(near, ", ")));
}

Result<std::vector<std::string>> texts_of(const OptionSpec& spec, const toml::node& node, const std::string& path) {
  const bool may_be_list = spec.kind == OptionKind::list || spec.kind == OptionKind::repeated;
  const auto refuse = [&](const toml::node& found) {
    const std::string_view wanted = spec.kind == OptionKind::flag ? "true or false"
                                    : may_be_list                 ? "a text, a whole number or a list of these"
                                                                  : "one text, whole number or truth value";
    return wrong(fmt::format("{}: {}", place(path, found.source()), spec.name), std::string(kind_word(found)),
                 std::string(wanted));
  };
  std::vector<std::string> texts;
  const toml::array* list = node.as_array();
  if (list == nullptr) {
    std::optional<std::string> text = as_text(node);
    if (!text || (spec.kind == OptionKind::flag && !node.is_boolean())) return refuse(node);
    texts.push_back(*std::move(text));
    return texts;
  }
  if (!may_be_list) return refuse(node);
  for (const toml::node& item : *list) {
    std::optional<std::string> text = as_text(item);
    if (!text || item.is_boolean()) return refuse(item);
    texts.push_back(*std::move(text));
  }
  return texts;
}

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

std::string find_config_file(const Environment& environment) {
  constexpr const char* kName = "gearshift.toml";
  if (is_there(kName)) return kName;
  const auto set = [&](const char* variable) {
    const char* value = environment(variable);
    return value == nullptr ? std::string() : std::string(value);
  };
  std::string folder = set("XDG_CONFIG_HOME");
  // The specification of base directories wants absolute ones and others ignored.
  if (folder.empty() || folder.front() != '/') {
    const std::string home = set("HOME");
    if (home.empty()) return "";
    folder = home + "/.config";
  }
  const std::string path = folder + "/gearshift/" + kName;
  return is_there(path) ? path : "";
}

Result<Options> with_config_file(Options given, const std::string& path) {
  Result<std::string> text = read_text(path, kLongestFile);
  if (!text) {
    ErrorInfo error = text.error();
    if (error.code == ErrorCode::damaged_checkpoint) error.code = ErrorCode::usage;
    return error;
  }
  const toml::parse_result parsed = toml::parse(*text, path);
  if (!parsed) {
    return wrong(place(path, parsed.error().source()), printable(parsed.error().description()), "TOML",
                 "a line reads: batch = [1, 256]");
  }
  Options options;
  for (const auto& [key, node] : parsed.table()) {
    std::string name(key.str());
    for (char& c : name) c = c == '_' ? '-' : c;
    const OptionSpec* spec = find_option(name);
    if (spec == nullptr || name == "help") return unknown_key(place(path, key.source()), key.str());
    const std::string where = fmt::format("{}: {}", place(path, key.source()), spec->name);
    GEARSHIFT_TRY(std::vector<std::string> texts, texts_of(*spec, node, path));
    const bool is_new = options.emplace(name, OptionValue{std::move(texts), "file", where}).second;
    if (!is_new) return wrong(where, "the same option twice", "one of the two spellings");
  }
  if (options.count("fuse") != 0 && options.count("no-fuse") != 0) {
    return wrong(options.at("no-fuse").written, "fuse beside it", "one of the two");
  }
  return over(std::move(given), options);
}

}  // namespace gearshift
