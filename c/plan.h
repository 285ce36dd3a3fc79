// The handle of a plan.
#pragma once

#include "border.h"

// Layers that were loaded from it keep the model open.
struct gearshift_plan {
  std::shared_ptr<const gearshift::Model> model;
};
