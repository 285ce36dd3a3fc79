// One model on ranks of unlike devices.
#include <algorithm>
#include <array>

#include "base/try.h"
#include "plan/hash.h"
#include "plan/select.h"

namespace gearshift {
namespace {

using Plans = std::vector<Plan>;

Result<Plans> plans_with(const PlanRequest& request, const std::vector<DeviceProfile>& devices, ActivationUse use) {
  Plans plans;
  for (const DeviceProfile& device : devices) {
    PlanRequest one = request;
    one.device = device;
    one.activation = use;
    GEARSHIFT_TRY(Plan plan, make_plan(std::move(one)));
    plans.push_back(std::move(plan));
  }
  return plans;
}

bool fast_everywhere(const Plans& plans, size_t row) {
  return std::all_of(plans.begin(), plans.end(), [&](const Plan& plan) {
    const auto& ranges = plan.layers[row].decision->ranges;
    return std::none_of(ranges.begin(), ranges.end(), [](const PlannedRange& r) { return is_slow(*r.kernel); });
  });
}

// Rows marked in `upgrade` at 16 bits, the others as the checkpoint asks.
Result<Plan> mixed_plan(const PlanRequest& request, const DeviceProfile& device, const std::vector<bool>& upgrade) {
  std::array<PlanRequest, 2> halves = {request, request};
  for (size_t half = 0; half < 2; ++half) {
    halves[half].device = device;
    halves[half].activation = half == 0 ? ActivationUse::as_checkpoint : ActivationUse::float16;
    halves[half].layers.clear();
    for (size_t row = 0; row < upgrade.size(); ++row)
      if (upgrade[row] == (half == 1)) halves[half].layers.push_back(request.layers[row]);
  }
  GEARSHIFT_TRY(Plan own, make_plan(std::move(halves[0])));
  GEARSHIFT_TRY(Plan raised, make_plan(std::move(halves[1])));
  Plan plan = own;
  plan.layers.clear();
  auto next_own = own.layers.begin(), next_raised = raised.layers.begin();
  for (bool up : upgrade) plan.layers.push_back(up ? *next_raised++ : *next_own++);
  plan.warnings.insert(plan.warnings.end(), raised.warnings.begin(), raised.warnings.end());
  std::erase_if(plan.unused, [&](const std::string& item) {
    return std::find(raised.unused.begin(), raised.unused.end(), item) == raised.unused.end();
  });
  plan.hash = decision_hash(plan);
  return plan;
}

}  // namespace

Result<GroupPlan> plan_group(const PlanRequest& request, const std::vector<DeviceProfile>& devices) {
  Result<Plans> own = plans_with(request, devices, ActivationUse::as_checkpoint);
  const bool may_upgrade = request.policy.arithmetic != Arithmetic::exact;
  const Result<Plans> upgraded =
      may_upgrade ? plans_with(request, devices, ActivationUse::float16) : Result<Plans>(ErrorInfo{});
  if (!own.ok() && !upgraded.ok()) return own.error();
  std::vector<bool> upgrade(request.layers.size(), !own.ok());
  for (size_t row = 0; own.ok() && upgraded.ok() && row < upgrade.size(); ++row)
    upgrade[row] = !fast_everywhere(*own, row) && fast_everywhere(*upgraded, row);
  GroupPlan group;
  for (const DeviceProfile& device : devices) {
    GEARSHIFT_TRY(Plan plan, mixed_plan(request, device, upgrade));
    group.plans.push_back(std::move(plan));
  }
  for (const LayerPlan& row : group.plans.empty() ? std::vector<LayerPlan>{} : group.plans[0].layers)
    group.activations.emplace_back(row.decision->activation_arithmetic);
  return group;
}

}  // namespace gearshift
