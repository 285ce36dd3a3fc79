#include "help.h"

#include "report/table.h"
#include "report/usage.h"

namespace gearshift::cli {

namespace {

constexpr std::string_view kLater = " (not available yet in this version)";

std::string option_name(const OptionSpec& spec) {
  std::string text = (spec.letters.empty() ? "" : std::string(spec.letters) + ", ") + "--" + std::string(spec.name);
  if (!spec.argument.empty()) text += " " + std::string(spec.argument);
  return text;
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
      "alone (plan only). `gearshift VERB --help` lists the options of a verb; each has an environment variable "
      "of the same name (GEARSHIFT_LINEAR_BACKEND for --linear-backend). GEARSHIFT_MAX_ISA steps the CPU's "
      "instruction set down. A gearshift.toml is not read yet in this version.",
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
    (spec.available ? now : later) += help_entry(option_name(spec), spec.help, width);
  }
  out += "\noptions\n" + now;
  if (!later.empty()) out += "\nnot available yet in this version\n" + later;
  return out;
}

}  // namespace gearshift::cli
