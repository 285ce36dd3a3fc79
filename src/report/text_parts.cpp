#include "report/text_parts.h"

#include <fmt/format.h>

#include "base/text.h"
#include "report/quantities.h"
#include "report/table.h"

namespace gearshift {

namespace {

std::string backend_words(const Policy& policy) {
  std::string text = policy.linear.global.empty() ? "auto" : policy.linear.global;
  for (const auto& [family, backend] : policy.linear.families)
    text += fmt::format(", {} for {}", backend, name(family));
  for (const auto& [glob, backend] : policy.layers) text += fmt::format(", {} for {}", backend, glob);
  return text;
}

}  // namespace

std::string device_text(const DeviceProfile& device) {
  std::string text = fmt::format("{} ({}, {}", device.name, name(device.platform), device.arch);
  if (device.cores > 0) text += fmt::format(", {} cores", device.cores);
  text += device.present ? ")" : "), not on this machine";
  if (!device.other_identity.empty()) text += "; the management library has " + device.other_identity + " at its index";
  return text;
}

std::string policy_text(const Plan& plan) {
  const Policy& policy = plan.policy;
  std::string text = plan.registry == "gearshift" ? "" : "registry " + plan.registry + "; ";
  text += "linear backend " + backend_words(policy);
  if (policy.tp > 1) text += fmt::format("; the shards of {} ranks", policy.tp);
  return text + fmt::format("; arithmetic {}{}", name(policy.arithmetic), policy.strict ? "; strict" : "");
}

std::string plan_heading(const Plan& plan, size_t width) {
  std::vector<std::string> kind;
  if (!plan.architecture.empty()) kind.push_back(plan.architecture);
  if (!plan.quant_method.empty()) kind.push_back(plan.quant_method);
  std::string model = printable(plan.model_path);
  if (!kind.empty()) model += " (" + printable(join(kind, ", ")) + ")";
  model += fmt::format(": {} in {}", count_text(plan.linear_layers, "linear layer", "linear layers"),
                       count_text(static_cast<int64_t>(plan.layers.size()), "row", "rows"));
  const std::string policy = fmt::format("{}; plan {}", policy_text(plan), plan.hash);
  return wrapped_paragraph("model   ", model, width) + wrapped_paragraph("device  ", device_text(plan.device), width) +
         wrapped_paragraph("policy  ", printable(policy, 1000), width);
}

std::string origins_text(const Plan& plan, size_t width) {
  std::vector<std::string> options;
  for (const PolicyOrigin& origin : plan.origins)
    options.push_back(fmt::format("{} = {} ({})", origin.option, origin.value, origin.source));
  return options.empty() ? "" : wrapped_paragraph("options ", printable(join(options, "; "), 2000), width);
}

std::string memory_words(const Plan& plan) {
  const PlanMemory memory = memory_of(plan);
  std::string text = "weights " + format_bytes(memory.weight_bytes);
  if (memory.scale_bytes > 0) text += " (scales " + format_bytes(memory.scale_bytes) + ")";
  text += "; packed copies " + format_bytes(memory.second_layout_bytes);
  if (memory.second_layout_bytes > 0 || plan.policy.memory_budget > 0)
    text += ", while packing " + format_bytes(memory.prepare_peak_bytes);
  if (plan.policy.memory_budget > 0) text += ", budget for second ones " + format_bytes(plan.policy.memory_budget);
  if (!memory.workspace_bytes.empty()) {
    const auto& [first, least] = memory.workspace_bytes.front();
    const auto& [last, most] = memory.workspace_bytes.back();
    text += fmt::format("; scratch {} at batch {}", format_bytes(static_cast<uint64_t>(least)), first);
    if (last != first) text += fmt::format(", {} at {}", format_bytes(static_cast<uint64_t>(most)), last);
  }
  if (plan.device.memory_bytes > 0) text += "; the device has " + format_bytes(plan.device.memory_bytes);
  return text;
}

std::string memory_text(const Plan& plan, size_t width) {
  return wrapped_paragraph(plan.policy.tp > 1 ? "a rank  " : "memory  ", memory_words(plan), width);
}

std::string shard_text(const LayerPlan& row) {
  if (!row.layer.shard) return "";
  const Shard& shard = *row.layer.shard;
  const std::string whole = shape_text(shard.whole->n, shard.whole->k);
  if (shard.split == Split::none) return fmt::format("every one of {} ranks holds all of {}", shard.tp, whole);
  std::string text = fmt::format("{} split of {} over {} ranks", name(shard.split), whole, shard.tp);
  if (const auto& rescue = row.decision->rescue) {
    text += fmt::format("; {} (+{}): {}", name(rescue->kind), format_bytes(rescue->extra_bytes), rescue->reason);
  }
  return text;
}

std::vector<std::string> rescue_lines(const std::vector<LayerGroup>& groups) {
  std::vector<std::string> lines;
  for (const LayerGroup& group : groups)
    if (group.decision().rescue) lines.push_back(group.pattern + ": " + shard_text(*group.layers.front()));
  return lines;
}

std::string obstacle_text(const TpDegree& degree) {
  if (degree.ok) return "";
  std::string text = degree.field.empty() ? degree.found : degree.field + " is " + degree.found;
  if (!degree.wanted.empty()) text += ", wanted " + degree.wanted;
  return text.empty() ? "not served as asked" : text;
}

std::string list_text(std::string_view heading, const std::vector<std::string>& items, size_t width) {
  if (items.empty()) return "";
  std::string out = "\n" + std::string(heading) + "\n";
  for (const std::string& item : items) out += wrapped_paragraph("  - ", printable(item, 2000), width);
  return out;
}

std::string warnings_text(const std::vector<Warning>& warnings, size_t width) {
  std::vector<std::string> items;
  for (const Warning& warning : warnings) items.push_back(warning.code + ": " + warning.message);
  return list_text("warnings", items, width);
}

std::string quarantined_text(const std::vector<Quarantine>& quarantined, size_t width) {
  std::vector<std::string> items;
  for (const Quarantine& q : quarantined) {
    items.push_back(
        fmt::format("{}, {}, {} ({}): {}", q.kernel, batch_text(q.m_min, q.m_max), q.layer_class, q.dtype, q.reason));
  }
  return list_text("quarantined: gave wrong numbers here and is not used", items, width);
}

}  // namespace gearshift
