// Which source of an option wins: call over command line over environment over file over default.
#include <algorithm>

#include "base/text.h"
#include "base/try.h"
#include "gearshift/pipeline.h"

namespace gearshift {

namespace {

constexpr std::string_view kPrefix = "GEARSHIFT_";

bool has(const Options& options, std::string_view name) { return options.count(std::string(name)) != 0; }

// --fuse and --no-fuse are one option: whichever was given speaks for both.
bool says(const Options& options, std::string_view name) {
  const bool fusing = name == "fuse" || name == "no-fuse";
  return has(options, name) || (fusing && (has(options, "fuse") || has(options, "no-fuse")));
}

}  // namespace

Options over(Options strong, const Options& weak) {
  Options result = strong;
  for (const auto& [name, value] : weak) {
    if (!says(strong, name)) result.emplace(name, value);
  }
  return result;
}

Options with_environment(Options given, const Environment& environment) {
  Options options;
  for (const OptionSpec& spec : all_options()) {
    if (spec.name == "help") continue;  // a word of one command, no setting
    const std::string variable = variable_of(spec.name);
    const char* value = environment(variable.c_str());
    if (value == nullptr || *value == '\0') continue;
    // A variable has one occurrence: what may be repeated is separated by commas there.
    const bool divided = spec.kind == OptionKind::repeated;
    options[std::string(spec.name)] = {divided ? split(value, ',') : std::vector<std::string>{value}, "environment",
                                       variable};
  }
  return over(std::move(given), options);
}

Result<Options> complete_options(Options given, const Environment& environment) {
  const std::string file = find_config_file(environment);
  Options options = with_environment(std::move(given), environment);
  if (!file.empty()) {
    GEARSHIFT_TRY(options, with_config_file(std::move(options), file));
  }
  // The only default that depends on who asks; a library call without options of its own keeps nothing.
  const Options store = {
      {"store", {{default_store_path(environment("XDG_STATE_HOME"), environment("HOME"))}, "default", ""}}};
  return over(std::move(options), store);
}

Options heard_by(Verb verb, Options options) {
  if (verb == kDoctor) return options;
  for (auto option = options.begin(); option != options.end();) {
    const OptionSpec* spec = find_option(option->first);
    const bool other = spec != nullptr && spec->verbs != 0 && (spec->verbs & verb) == 0;
    option = other ? options.erase(option) : std::next(option);
  }
  return options;
}

Options effective_options(const Options& options) {
  Options defaults;
  for (const OptionSpec& spec : all_options()) {
    if (!spec.otherwise.empty()) defaults[std::string(spec.name)] = {{std::string(spec.otherwise)}, "default", ""};
  }
  return over(options, defaults);
}

std::vector<std::string> unknown_variables(const std::vector<std::string>& variables) {
  std::vector<std::string> known;  // without the prefix, which would make all of them near
  for (const OptionSpec& spec : all_options()) known.push_back(variable_of(spec.name).substr(kPrefix.size()));
  const std::vector<std::string_view> names(known.begin(), known.end());
  std::vector<std::string> unknown;
  for (const std::string& variable : variables) {
    if (!variable.starts_with(kPrefix)) continue;
    const std::string word = variable.substr(kPrefix.size());
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    std::vector<std::string> near = near_names(word, names);
    for (std::string& name : near) name.insert(0, kPrefix);
    unknown.push_back(variable + (near.empty() ? "" : ": did you mean " + join(near, ", ") + "?"));
  }
  return unknown;
}

}  // namespace gearshift
