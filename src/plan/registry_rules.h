// What a registry's rules do around the walk of a list. Each is data of the registry; none knows whose it is.
#pragma once

#include "plan/gates.h"
#include "plan/requests.h"

namespace gearshift {

// Whose kernels are meant where some are missing: "this build", "the registry vllm".
std::string described(const Registry& registry);

// The first route that holds for the layer; nullptr: its own family's list.
const ListRoute* route_of(const LayerSpec& layer, const SelectionContext& context);

LayerCase case_of(const LayerSpec& layer, const RequestRule& request, const SelectionContext& context);
// The layer as the registry's kernels see it (RegistryRules::seen_as).
LayerSpec as_seen(const LayerSpec& layer, const SelectionContext& context);
// The request, or `auto` in its place where the rules do not hear it.
RequestRule as_heard(const RequestRule& request, const LayerCase& layer_case, const RegistryRules& rules);

// The list's lines in the order that the moves leave; those moved out stay, at the end, and are refused.
std::vector<ListEntry> lines_of(const LayerCase& layer_case, const SelectionContext& context);
// The first force that holds; nullptr: none.
const Force* force_of(const LayerCase& layer_case, const SelectionContext& context);
// A line for the forced kernel where the list has none, so that its refusal is told.
void add_forced_line(const Force& force, const LayerCase& layer_case, const SelectionContext& context,
                     std::vector<ListEntry>& lines);
// The candidate of a line behind the rules and its gates.
GatedCandidate candidate_of(const ListEntry& line, const LayerCase& layer_case, const ListRoute* route,
                            const Force* force, const std::string& layer_class, const SelectionContext& context);

}  // namespace gearshift
