#include "plan/registry_rules.h"

#include <algorithm>

#include "base/text.h"

namespace gearshift {
namespace {

bool admitted(std::string_view kernel_name, const LayerCase& layer_case, const Registry& registry) {
  const Kernel* kernel = registry.find_kernel(kernel_name, layer_case.device.platform);
  return kernel != nullptr && !refuses(*kernel, layer_case, Stage::device);
}

bool holds(const SeenAs& rule, const LayerCase& layer_case, const Registry& registry) {
  return gearshift::holds(rule.when, layer_case) &&
         (rule.if_usable.empty() || admitted(rule.if_usable, layer_case, registry)) &&
         (rule.unless_usable.empty() || !admitted(rule.unless_usable, layer_case, registry));
}

bool names(const Move& move, const Kernel& kernel) {
  return std::find(move.kernels.begin(), move.kernels.end(), kernel.name) != move.kernels.end();
}

const Move* move_out(const Kernel& kernel, const LayerCase& layer_case, const Registry& registry) {
  for (const Move& move : registry.rules.moves)
    if (move.to == Move::To::out && names(move, kernel) && holds(move.when, layer_case)) return &move;
  return nullptr;
}

bool stands_in_list(const Kernel& kernel, const LayerCase& layer_case, const Registry& registry) {
  const KernelList* list = registry.find(layer_case);
  return list != nullptr && std::any_of(list->entries.begin(), list->entries.end(),
                                        [&](const ListEntry& line) { return line.kernel == &kernel; });
}

// Why the rules alone keep a line from serving, before any gate.
std::optional<Refusal> refused_by_rules(const ListEntry& line, const LayerCase& layer_case, const ListRoute* route,
                                        const Force* force, const Registry& registry) {
  const Kernel& kernel = *line.kernel;
  const std::string name(kernel.name);
  if (route != nullptr && !route->refuses.empty())
    return Refusal{Stage::policy, "routes", "", "", std::string(route->refuses)};
  if (force != nullptr && kernel.name != force->kernel)
    return Refusal{Stage::policy, "forces", name, std::string(force->kernel),
                   std::string(force->kernel) + " is forced: " + std::string(force->why)};
  if (force != nullptr && !stands_in_list(kernel, layer_case, registry)) {
    if (auto refusal = refuses(kernel, layer_case, Stage::device)) {
      refusal->reason = "is forced (" + std::string(force->why) + ") and " + refusal->reason;
      return refusal;
    }
    return Refusal{Stage::policy, "forces", name, "",
                   "is forced (" + std::string(force->why) + ") and is no kernel for " +
                       std::string(gearshift::name(layer_case.layer.family))};
  }
  if (line.on_request && layer_case.backend != kernel.backend)
    return Refusal{Stage::policy, "on_request", std::string(layer_case.backend), std::string(kernel.backend),
                   "is chosen only where its backend " + std::string(kernel.backend) + " is asked for"};
  if (const Move* move = move_out(kernel, layer_case, registry))
    return Refusal{Stage::policy, "moves", name, "", std::string(move->why)};
  return std::nullopt;
}

}  // namespace

std::string described(const Registry& registry) {
  return registry.storage == nullptr ? "this build" : "the registry " + std::string(registry.name);
}

const ListRoute* route_of(const LayerSpec& layer, const SelectionContext& context) {
  const BackendChoice& choice = layer.kind == LayerKind::experts ? context.policy.moe : context.policy.linear;
  const LayerCase layer_case{layer, context.device, context.policy.dtype, context.assumptions, choice.global};
  for (const ListRoute& route : context.registry.rules.routes)
    if (holds(route.when, layer_case)) return &route;
  return nullptr;
}

LayerCase case_of(const LayerSpec& layer, const RequestRule& request, const SelectionContext& context) {
  return {layer, context.device, context.policy.dtype, context.assumptions, request.backend};
}

LayerSpec as_seen(const LayerSpec& layer, const SelectionContext& context) {
  const LayerCase layer_case{layer, context.device, context.policy.dtype, context.assumptions};
  LayerSpec seen = layer;
  for (const SeenAs& rule : context.registry.rules.seen_as) {
    if (!seen.scheme.activation || !holds(rule, layer_case, context.registry)) continue;
    seen.scheme.activation->granularity = rule.activation_granularity;
    break;
  }
  return seen;
}

RequestRule as_heard(const RequestRule& request, const LayerCase& layer_case, const RegistryRules& rules) {
  const RequestRules& own = layer_case.layer.kind == LayerKind::experts ? rules.experts : rules.linear;
  RequestRule heard = request;
  const bool deaf = std::any_of(own.not_heard.begin(), own.not_heard.end(),
                                [&](const Condition& condition) { return holds(condition, layer_case); });
  if (deaf) heard.backend = "auto";
  return heard;
}

std::vector<ListEntry> lines_of(const LayerCase& layer_case, const SelectionContext& context) {
  const KernelList* list = context.registry.find(layer_case);
  if (list == nullptr) return {};
  std::vector<ListEntry> lines = list->entries;
  for (const Move& move : context.registry.rules.moves) {
    if (!holds(move.when, layer_case)) continue;
    const bool to_front = move.to == Move::To::front;
    std::stable_partition(lines.begin(), lines.end(),
                          [&](const ListEntry& line) { return names(move, *line.kernel) == to_front; });
  }
  return lines;
}

const Force* force_of(const LayerCase& layer_case, const SelectionContext& context) {
  for (const Force& force : context.registry.rules.forces) {
    if (!holds(force.when, layer_case)) continue;
    if (!force.if_usable || admitted(force.kernel, layer_case, context.registry)) return &force;
  }
  return nullptr;
}

void add_forced_line(const Force& force, const LayerCase& layer_case, const SelectionContext& context,
                     std::vector<ListEntry>& lines) {
  const bool there =
      std::any_of(lines.begin(), lines.end(), [&](const ListEntry& line) { return line.kernel->name == force.kernel; });
  if (there) return;
  ListEntry line;
  line.kernel = context.registry.find_kernel(force.kernel, layer_case.device.platform);
  if (line.kernel != nullptr) lines.push_back(line);
}

GatedCandidate candidate_of(const ListEntry& line, const LayerCase& layer_case, const ListRoute* route,
                            const Force* force, const std::string& layer_class, const SelectionContext& context) {
  if (auto refusal = refused_by_rules(line, layer_case, route, force, context.registry)) {
    GatedCandidate candidate;
    candidate.entry = &line;
    candidate.refusal = std::move(refusal);
    candidate.left_out = true;
    return candidate;
  }
  const bool forced = force != nullptr;
  return pass_gates(line, layer_case, layer_class, context,
                    {forced && force->past_disabled, forced && force->past_layer});
}

}  // namespace gearshift
