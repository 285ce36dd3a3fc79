// Pieces that several texts share; each ends in a newline or is empty.
#pragma once

#include <string>

#include "gearshift/pipeline.h"

namespace gearshift {

// Model, device and policy of a plan, a few lines.
std::string plan_heading(const Plan& plan, size_t width);
// The options that are not defaults, each with where it came from; "" where all are.
std::string origins_text(const Plan& plan, size_t width);
std::string warnings_text(const std::vector<Warning>& warnings, size_t width);
std::string quarantined_text(const std::vector<Quarantine>& quarantined, size_t width);
// What the weights take, and what is needed beside them.
std::string memory_text(const Plan& plan, size_t width);
// "row split of 8192 x 28672 over 8 ranks; padding to 8192 x 3600 (+1.2 MB): REASON"; "" for a whole layer.
std::string shard_text(const LayerPlan& row);
// A blank line, a heading and one wrapped line per item; "" without items.
std::string list_text(std::string_view heading, const std::vector<std::string>& items, size_t width);
std::string device_text(const DeviceProfile& device);

}  // namespace gearshift
