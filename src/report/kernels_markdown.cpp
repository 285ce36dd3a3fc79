// docs/kernels.md: the support matrix, from the lists and contracts.
#include "base/text.h"
#include "report/contract_fields.h"
#include "report/documents.h"
#include "report/quantities.h"

namespace gearshift {

namespace {

// '|' ends a cell, '_' and '*' may start emphasis.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : printable(text, 1000)) {
    if (c == '|' || c == '*') out += '\\';
    out += c;
  }
  return out;
}

std::string accepts(const Kernel& kernel) {
  std::string out;
  for (const ContractField& field : contract_fields(kernel))
    out += (out.empty() ? "" : "; ") + field.name + " " + join(field.values, ", ");
  return out.empty() ? "everything" : out;
}

std::string verified(const Contract& contract) {
  std::string out;
  for (const std::string_view device : contract.verified) out += (out.empty() ? "" : ", ") + std::string(device);
  return out;
}

}  // namespace

std::string kernels_markdown(const Registry& registry) {
  std::string out =
      "# Kernels\n\n"
      "Written by `gearshift kernels --markdown > docs/kernels.md`; a test compares the two.\n\n"
      "For each platform and family the kernels in the order in which they are tried: the first whose contract accepts "
      "the\n"
      "layer, the device and the batch size is chosen, unless a measurement, a request or a quarantine says otherwise. "
      "A\n"
      "batch range is where a line is preferred. A platform for which nothing is written gets the host's reference.\n";
  for (const KernelList& list : registry.lists) {
    out += "\n## " + std::string(name(list.platform)) + ", " + std::string(name(list.family)) +
           (list.kind == LayerKind::experts ? ", experts" : "") +
           "\n\n| kernel | backend | batch | activations | layout | accepts | verified on | why here |\n"
           "|---|---|---|---|---|---|---|---|\n";
    for (const ListEntry& entry : list.entries) {
      const Kernel& kernel = *entry.kernel;
      out += "| `" + std::string(kernel.name) + "` | " + cell(kernel.backend) + " | " +
             (entry.on_request ? "on request" : range_text(entry.m_min, entry.m_max)) + " | " +
             cell(activation_use_word(kernel.activation)) + " | " + cell(kernel.layout->name) + " | " +
             cell(accepts(kernel)) + " | " + cell(verified(kernel.contract)) + " | " + cell(entry.why) + " |\n";
    }
  }
  return out;
}

}  // namespace gearshift
