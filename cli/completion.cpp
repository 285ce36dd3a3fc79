// Scripts for shells, from the tables of verbs and options. Names of devices, backends and kernels are those of this
// build.
#include <set>

#include "base/text.h"
#include "host.h"
#include "output.h"
#include "report/usage.h"

namespace gearshift::cli {

namespace {

using Words = std::vector<std::string>;

std::string joined(const Words& words, std::string_view separator) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(separator)) + word;
  return out;
}

Words device_words(const DeviceProfile& host) {
  std::set<std::string> words;
  for (const DeviceProfile& device : known_devices(host)) {
    words.insert(device.aliases.begin(), device.aliases.end());
    if (device.arch.find(' ') == std::string::npos && !device.present) words.insert(device.arch);
  }
  words.insert("cpu");
  return {words.begin(), words.end()};
}

Words kernel_words() {
  std::set<std::string> words;
  for (const KernelList& list : builtin_registry().lists) {
    for (const ListEntry& entry : list.entries) words.emplace(entry.kernel->name);
  }
  return {words.begin(), words.end()};
}

Words backend_words() {
  Words words = {"auto"};
  for (const std::string_view backend : known_backends()) {
    if (backend != "auto") words.emplace_back(backend);
  }
  return words;
}

// Words that may stand behind the option, beside a file where it takes one; empty where that is free text.
Words choices(const OptionSpec& spec, const DeviceProfile& host) {
  if (spec.argument == "D") return device_words(host);
  if (spec.argument == "K") return kernel_words();
  if (spec.argument.starts_with("B[")) return backend_words();
  Words out;
  if (spec.argument.find('|') == std::string_view::npos) return out;
  for (std::string& word : split(spec.argument, '|')) {
    const bool stands_for_itself = word.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ[") == std::string::npos;
    if (stands_for_itself) out.push_back(std::move(word));
  }
  return out;
}

bool takes_file(const OptionSpec& spec) {
  return spec.argument.find("FILE") != std::string_view::npos || spec.argument.find("DIR") != std::string_view::npos;
}

// What stands behind the verb where that is a word of its own and no model.
Words first_words(const VerbSpec& verb) {
  if (verb.verb == kCompletion) return {"bash", "zsh", "fish"};
  if (verb.verb == kStore) return {"list", "verify", "export", "import", "merge", "prune"};
  return {};
}

Words words_of(const VerbSpec& verb) {
  Words words;
  for (const OptionSpec& spec : all_options()) {
    if ((spec.verbs & verb.verb) == 0 || spec.use == OptionUse::later) continue;
    words.push_back("--" + std::string(spec.name));
    if (!spec.letters.empty()) words.emplace_back(spec.letters);
  }
  return words;
}

Words verb_words() {
  Words words;
  for (const VerbSpec& verb : all_verbs()) {
    if (verb.run != nullptr) words.emplace_back(verb.name);
  }
  return words;
}

std::string bash_script(const DeviceProfile& host) {
  std::string out =
      "# bash completion of gearshift: source <(gearshift completion bash)\n"
      "_gearshift() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options=\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W '" +
      joined(verb_words(), " ") + " --help --version' -- \"$word\"))\n    return\n  fi\n  case $before in\n";
  for (const OptionSpec& spec : all_options()) {
    if (spec.verbs == 0 || spec.argument.empty() || spec.use == OptionUse::later) continue;
    const Words words = choices(spec, host);
    const std::string names =
        "--" + std::string(spec.name) + (spec.letters.empty() ? "" : "|" + std::string(spec.letters));
    if (words.empty() && !takes_file(spec)) continue;
    const std::string files = takes_file(spec) ? "-f " : "";
    out += "    " + names + ") COMPREPLY=($(compgen " + files + "-W '" + joined(words, " ") +
           "' -- \"$word\")); return;;\n";
  }
  out += "  esac\n  case ${COMP_WORDS[1]} in\n";
  for (const VerbSpec& verb : all_verbs()) {
    if (verb.run == nullptr) continue;
    const Words first = first_words(verb);
    out += "    " + std::string(verb.name) + ") options='" + joined(words_of(verb), " ") +
           (first.empty() ? "" : " " + joined(first, " ")) + "';;\n";
  }
  return out +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
         "  case $word in -*) ;; *) COMPREPLY+=($(compgen -f -- \"$word\"));; esac\n"
         "}\n"
         "complete -o filenames -F _gearshift gearshift\n";
}

// The first sentence, for single quotes of zsh and fish; `stops` are characters that end a description there, `quote`
// is how one of those quotes is written.
std::string described(std::string_view text, std::string_view stops, std::string_view quote) {
  for (const std::string_view end : {";", ". ", " (", ": "}) text = text.substr(0, text.find(end));
  std::string out;
  for (const char c : text) {
    if (c == '\\') continue;
    if (stops.find(c) != std::string_view::npos) out += '\\';
    if (c == '\'')
      out += quote;
    else
      out += c;
  }
  return out;
}

std::string zsh_script(const DeviceProfile& host) {
  constexpr std::string_view kQuote = "'\\''";
  std::string out =
      "#compdef gearshift\n"
      "# zsh completion of gearshift: source <(gearshift completion zsh), or as _gearshift in a folder of $fpath\n"
      "_gearshift() {\n"
      "  local -a verbs\n  verbs=(\n";
  for (const VerbSpec& verb : all_verbs()) {
    if (verb.run != nullptr) out += "    '" + std::string(verb.name) + ":" + described(verb.help, ":", kQuote) + "'\n";
  }
  out += "  )\n  if (( CURRENT == 2 )); then _describe verb verbs; return; fi\n  case $words[2] in\n";
  for (const VerbSpec& verb : all_verbs()) {
    if (verb.run == nullptr) continue;
    out += "    " + std::string(verb.name) + ")\n      _arguments -s";
    for (const OptionSpec& spec : all_options()) {
      if ((spec.verbs & verb.verb) == 0 || spec.use == OptionUse::later) continue;
      const Words words = choices(spec, host);
      const std::string listed = joined(words, " ");
      const std::string action = words.empty() && takes_file(spec) ? ":file:_files"
                                 : takes_file(spec)                ? ":file:{compadd " + listed + "; _files}"
                                 : !words.empty()                  ? ":value:(" + listed + ")"
                                 : spec.argument.empty()           ? ""
                                                                   : ":" + described(spec.argument, ":[]", kQuote);
      const std::string repeat = spec.kind == OptionKind::repeated || spec.kind == OptionKind::list ? "*" : "";
      out += " \\\n        '" + repeat + "--" + std::string(spec.name) + "[" + described(spec.help, "[]:", kQuote) +
             "]" + (action.empty() || action.find(':', 1) != std::string::npos ? action : action + ":") + "'";
    }
    const Words first = first_words(verb);
    if (!first.empty()) out += " \\\n        '2:word:(" + joined(first, " ") + ")'";
    out += " \\\n        '*:file:_files'\n      ;;\n";
  }
  // Found in $fpath the file is the function itself, and the first call is already a question.
  return out +
         "  esac\n}\nif [[ $funcstack[1] == _gearshift ]]; then _gearshift \"$@\"; else compdef _gearshift gearshift; "
         "fi\n";
}

std::string fish_script(const DeviceProfile& host) {
  constexpr std::string_view kQuote = "\\'";
  std::string out =
      "# fish completion of gearshift: gearshift completion fish | source\n"
      "complete -c gearshift -n __fish_use_subcommand -f\n";
  for (const VerbSpec& verb : all_verbs()) {
    if (verb.run == nullptr) continue;
    out += "complete -c gearshift -n __fish_use_subcommand -f -a " + std::string(verb.name) + " -d '" +
           described(verb.help, "", kQuote) + "'\n";
  }
  for (const VerbSpec& verb : all_verbs()) {
    if (verb.run == nullptr) continue;
    const std::string start = "complete -c gearshift -n '__fish_seen_subcommand_from " + std::string(verb.name) + "' ";
    for (const OptionSpec& spec : all_options()) {
      if ((spec.verbs & verb.verb) == 0 || spec.use == OptionUse::later) continue;
      const Words words = choices(spec, host);
      std::string line = start + "-l " + std::string(spec.name);
      if (!spec.letters.empty()) line += " -s " + std::string(spec.letters.substr(1));
      if (!spec.argument.empty()) line += takes_file(spec) ? " -r" : " -x";
      if (!words.empty()) line += " -a '" + joined(words, " ") + "'";
      out += line + " -d '" + described(spec.help, "", kQuote) + "'\n";
    }
    const Words first = first_words(verb);
    if (!first.empty()) out += start + "-f -a '" + joined(first, " ") + "'\n";
  }
  return out;
}

}  // namespace

int completion(const Call& call) {
  const Result<DeviceProfile> host = host_of(call);
  if (!host.ok()) return fail(host.error());
  std::string script;
  if (call.model == "bash") script = bash_script(*host);
  if (call.model == "zsh") script = zsh_script(*host);
  if (call.model == "fish") script = fish_script(*host);
  if (script.empty()) {
    const std::string_view shells[] = {"bash", "zsh", "fish"};
    return fail({ErrorCode::usage,
                 "completion",
                 "'" + shown(call.model) + "'",
                 "bash, zsh or fish",
                 did_you_mean(call.model, shells),
                 {}});
  }
  return print_result(Call{}, {}, [&](size_t) { return script; });
}

}  // namespace gearshift::cli
