// Pieces that several texts share; each ends in a newline or is empty.
#pragma once

#include <string>

#include "gearshift/pipeline.h"
#include "report/layer_groups.h"

namespace gearshift {

// Model, device and policy of a plan, a few lines.
std::string plan_heading(const Plan& plan, size_t width);
// What was asked for, as half a sentence: backends, ranks, arithmetic.
std::string policy_text(const Plan& plan);
// The options that are not defaults, each with where it came from; "" where all are.
std::string origins_text(const Plan& plan, size_t width);
std::string warnings_text(const std::vector<Warning>& warnings, size_t width);
std::string quarantined_text(const std::vector<Quarantine>& quarantined, size_t width);
// What the weights take, and what is needed beside them.
std::string memory_text(const Plan& plan, size_t width);
// The same without its heading and line breaks.
std::string memory_words(const Plan& plan);
// "row split of 8192 x 28672 over 8 ranks; padding to 8192 x 3600 (+1.2 MB): REASON"; "" for a whole layer.
std::string shard_text(const LayerPlan& row);
// Every group of shards that does not fit its kernels as it is, and what is done about it.
std::vector<std::string> rescue_lines(const std::vector<LayerGroup>& groups);
// "k is 576, wanted a multiple of 128"; "" where no rescue is needed.
std::string obstacle_text(const TpDegree& degree);
// A blank line, a heading and one wrapped line per item; "" without items.
std::string list_text(std::string_view heading, const std::vector<std::string>& items, size_t width);
std::string device_text(const DeviceProfile& device);

}  // namespace gearshift
