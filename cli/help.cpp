#include "help.h"

#include "report/table.h"
#include "report/usage.h"

namespace gearshift::cli {

namespace {

constexpr std::string_view kLater = " (not in this version)";

std::string option_name(const OptionSpec& spec) {
  std::string text = (spec.letters.empty() ? "" : std::string(spec.letters) + ", ") + "--" + std::string(spec.name);
  if (!spec.argument.empty()) text += " " + std::string(spec.argument);
  return text;
}

// '|' ends a cell of a Markdown table and '*' may start emphasis.
std::string in_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || (c == '*' && text.front() != '`')) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string overview_help(size_t width) {
  std::string out = "usage: gearshift VERB [MODEL] [options]\n\n";
  out +=
      wrapped_paragraph("", "Chooses, proves and runs kernels for the linear layers of quantized checkpoints.", width) +
      "\nverbs\n";
  for (const VerbSpec& verb : all_verbs()) {
    const std::string name = std::string(verb.name) + (verb.argument.empty() ? "" : " ") + std::string(verb.argument);
    out += help_entry(name, std::string(verb.help) + (verb.run == nullptr ? std::string(kLater) : ""), width);
  }
  out += "\n";
  out += wrapped_paragraph(
      "",
      "MODEL is a directory with config.json and safetensors files, one .safetensors file, or a config.json "
      "alone (plan and bench). `gearshift VERB --help` lists the options of a verb; each has an environment variable "
      "of the same name (GEARSHIFT_LINEAR_BACKEND for --linear-backend) and a key in gearshift.toml "
      "(linear-backend = \"native\", batch = [1, 256]), which is read from the working directory or, where none is, "
      "from ~/.config/gearshift. The command line wins over the environment, the environment over the file. "
      "GEARSHIFT_MAX_ISA steps the CPU's instruction set down.",
      width);
  out += "\nexit codes\n";
  out += help_entry("0", "done", width) + help_entry("1", "an error at run time", width) +
         help_entry("2", "wrong usage", width);
  out += help_entry("3", "no kernel can serve a layer, or --strict refused a fallback", width);
  out += help_entry("4", "the checkpoint is damaged, or of a scheme that is not loaded", width);
  out += help_entry("5", "a self-check failed and no healthy kernel was left, or verify found a failure", width);
  return out;
}

std::string verb_help(const VerbSpec& verb, size_t width) {
  std::string out = "usage: gearshift " + std::string(verb.name);
  if (!verb.argument.empty()) out += " " + std::string(verb.argument);
  out += " [options]\n\n" +
         wrapped_paragraph("", std::string(verb.help) + (verb.run == nullptr ? std::string(kLater) : ""), width);
  std::string now, later;
  for (const OptionSpec& spec : all_options()) {
    if ((spec.verbs & verb.verb) == 0) continue;
    (spec.use == OptionUse::later ? later : now) += help_entry(option_name(spec), spec.help, width);
  }
  out += "\noptions\n" + now;
  if (!later.empty()) out += "\nnot in this version\n" + later;
  return out;
}

std::string options_page() {
  std::string out =
      "# Options\n\n"
      "Written by `gearshift --help=markdown > docs/options.md`; a test compares the two.\n\n"
      "Each option is a word of the command line, an environment variable and a key of `gearshift.toml`; the command "
      "line\n"
      "wins over the environment, the environment over the file, the file over the default. `gearshift doctor` shows "
      "every\n"
      "value and its source. The file is read from the working directory or, where none is, from "
      "`$XDG_CONFIG_HOME/gearshift`\n"
      "(`~/.config/gearshift`). What may be repeated or is comma-separated may be a list there: `batch = [1, 256]`.\n\n"
      "| option | variable | key | default | verbs | meaning |\n|---|---|---|---|---|---|\n";
  for (const OptionSpec& spec : all_options()) {
    std::string verbs;
    size_t without = 0;
    for (const VerbSpec& verb : all_verbs()) {
      if ((spec.verbs & verb.verb) == 0) {
        ++without;
        continue;
      }
      verbs += (verbs.empty() ? "" : ", ") + std::string(verb.name);
    }
    if (without == 0) verbs = "all";
    const bool setting = spec.name != "help";
    const std::string word = spec.verbs == 0 ? "" : "`" + option_name(spec) + "`";
    out += "| " + in_cell(word) + " | " + (setting ? "`" + variable_of(spec.name) + "`" : "") + " | " +
           (setting ? "`" + std::string(spec.name) + "`" : "") + " | " + in_cell(spec.otherwise) + " | " + verbs +
           " | " + in_cell(spec.help) + (spec.use == OptionUse::later ? " (not in this version)" : "") + " |\n";
  }
  return out;
}

}  // namespace gearshift::cli
