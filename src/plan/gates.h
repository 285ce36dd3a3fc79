// The gates a candidate passes one by one: policy -> build -> device -> layer -> self_check. What is left is the set of
// batch sizes it may serve. The backend filter and the layout rule are no gates of one candidate: see select.h.
#pragma once

#include "gearshift/plan.h"
#include "plan/batch_set.h"

namespace gearshift {

// What a decision rests on besides the layer.
struct SelectionContext {
  const DeviceProfile& device;
  const Policy& policy;
  const Store& store;
  const Registry& registry;
  const Assumptions& assumptions;
  std::optional<ActivationUse> activation = std::nullopt;  // see PlanRequest
};

// Gates that a registry's rules open for a kernel.
struct OpenGates {
  bool disabled = false;  // RegistryRules::disabling_fact
  bool layer = false;     // what the contract says of the layer
};

struct GatedCandidate {
  const ListEntry* entry = nullptr;
  std::optional<Refusal> refusal;              // the first gate it fails
  bool left_out = false;                       // refused because the user left it out by name
  BatchSet contract_allows;                    // empty when refused before its M range was looked at
  BatchSet allowed;                            // the same less quarantines; empty when refused
  std::vector<const Quarantine*> quarantines;  // those that take batch sizes away
};
GatedCandidate pass_gates(const ListEntry& entry, const LayerCase& layer_case, const std::string& layer_class,
                          const SelectionContext& context, OpenGates open = {});

// One kernel serves all batch sizes of a layer.
bool one_for_all(const Policy& policy);

// The kernel has been run on this device, by the names (or patterns) of its contract; "cpu" there means any. Nothing of
// another engine runs here, so nothing of it waits for a check; what the host does for a device is no matter of the
// device.
bool is_verified_on(const Kernel& kernel, const DeviceProfile& device);

// True when an item of --disable means this kernel, its backend or the family.
bool disables(const std::string& pattern, const Kernel& kernel, Family family);

}  // namespace gearshift
