#include "arguments.h"

#include <CLI/CLI.hpp>

#include <algorithm>

#include "report/usage.h"

namespace gearshift::cli {

namespace {

ErrorInfo usage(std::string subject, std::string found, std::string wanted, std::string hint) {
  return {ErrorCode::usage, std::move(subject), std::move(found), std::move(wanted), std::move(hint), {}};
}

std::string help_hint(const VerbSpec& verb) { return "see `gearshift " + std::string(verb.name) + " --help`"; }

bool is_dashed(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// Whether `word`, an option, takes the word behind it as its value.
bool takes_next_word(const std::string& word) {
  if (word.find('=') != std::string::npos) return false;
  for (const OptionSpec& spec : all_options()) {
    if (word == "--" + std::string(spec.name) || word == spec.letters) return !spec.argument.empty();
  }
  return false;
}

// "-o DIR" or "-oDIR" among the words.
bool has_letters(const std::vector<std::string>& words, std::string_view letters) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) { return word.starts_with(letters); });
}

ErrorInfo unexpected(const VerbSpec& verb, const std::string& word) {
  if (!is_dashed(word)) {
    const bool none = verb.most == 0;
    return usage(std::string(verb.name), "the extra word '" + shown(word) + "'",
                 none ? "options only" : std::string(verb.argument),
                 "a file for the result is written as --json=FILE; " + help_hint(verb));
  }
  const std::string name =
      word.substr(word.find_first_not_of('-') == std::string::npos ? 0 : word.find_first_not_of('-'));
  const std::string bare = name.substr(0, name.find('='));
  if (find_option(bare) != nullptr) {
    return usage(shown(word), "an option of other verbs", "an option of " + std::string(verb.name), help_hint(verb));
  }
  std::vector<std::string> names;
  for (const OptionSpec& spec : all_options()) {
    if ((spec.verbs & verb.verb) != 0) names.push_back("--" + std::string(spec.name));
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string near = did_you_mean("--" + bare, views);
  return usage(shown(word), "an unknown option", "an option of " + std::string(verb.name),
               near.empty() ? help_hint(verb) : near);
}

}  // namespace

std::vector<std::string> with_explicit_json(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  bool model_seen = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      out.insert(out.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    if (word == "--json") {
      const bool has_file = model_seen && i + 1 < words.size() && !is_dashed(words[i + 1]);
      out.push_back("--json=" + (has_file ? words[++i] : "-"));
      continue;
    }
    out.push_back(word);
    if (!is_dashed(word)) {
      model_seen = true;
    } else if (takes_next_word(word) && i + 1 < words.size()) {
      out.push_back(words[++i]);
    }
  }
  return out;
}

Result<Call> read_arguments(const VerbSpec& verb, const std::vector<std::string>& words) {
  Call call;
  ::CLI::App app;
  app.set_help_flag("");
  app.allow_extras();
  std::vector<std::pair<const OptionSpec*, ::CLI::Option*>> options;
  std::vector<std::vector<std::string>> values(all_options().size());
  for (size_t i = 0; i < all_options().size(); ++i) {
    const OptionSpec& spec = all_options()[i];
    if ((spec.verbs & verb.verb) == 0) continue;
    const std::string names =
        (spec.letters.empty() ? "" : std::string(spec.letters) + ",") + "--" + std::string(spec.name);
    ::CLI::Option* option = spec.argument.empty()
                                ? app.add_flag(names)
                                : app.add_option(names, values[i])->expected(1)->allow_extra_args(false);
    option->multi_option_policy(::CLI::MultiOptionPolicy::TakeAll);
    options.emplace_back(&spec, option);
  }
  const std::vector<std::string> explicit_words = with_explicit_json(words);
  const auto plain = std::find(explicit_words.begin(), explicit_words.end(), "--");
  try {
    std::vector<std::string> reversed(explicit_words.begin(), plain);
    std::reverse(reversed.begin(), reversed.end());
    app.parse(std::move(reversed));
  } catch (const ::CLI::ParseError& error) {
    return usage(std::string(verb.name), shown(error.what()), "options and their values", help_hint(verb));
  }
  for (const auto& [spec, option] : options) {
    if (option->count() == 0) continue;
    OptionValue& given = call.options[std::string(spec->name)];
    given.source = "command line";
    if (!spec->letters.empty() && has_letters(words, spec->letters)) given.written = spec->letters;
    given.values = option->results();
    if (!spec->argument.empty()) continue;
    for (std::string& value : given.values) {
      if (value == "true") value = "1";
    }
  }
  if (call.options.count("help") != 0) return call;
  call.words = app.remaining();
  const auto dashed = std::find_if(call.words.begin(), call.words.end(), is_dashed);
  if (dashed != call.words.end()) return unexpected(verb, *dashed);
  if (plain != explicit_words.end()) call.words.insert(call.words.end(), std::next(plain), explicit_words.end());
  if (call.words.size() > verb.most) return unexpected(verb, call.words[verb.most]);
  if (call.options.count("fuse") != 0 && call.options.count("no-fuse") != 0) {
    return usage("--fuse", "--no-fuse beside it", "one of the two", help_hint(verb));
  }
  if (!call.words.empty()) call.model = call.words.front();
  const bool empty = std::any_of(call.words.begin(), call.words.end(), [](const auto& word) { return word.empty(); });
  if (call.words.size() < verb.least || empty) {
    const bool model = verb.argument == "MODEL";
    return usage(
        std::string(verb.name),
        model   ? "no MODEL"
        : empty ? "an empty word"
                : "too few words",
        model ? "a checkpoint's directory, its .safetensors file or its config.json" : std::string(verb.argument),
        help_hint(verb));
  }
  return call;
}

}  // namespace gearshift::cli
