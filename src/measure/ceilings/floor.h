// The least time that the ceilings of a machine leave a kernel.
#pragma once

#include "gearshift/measure.h"

namespace gearshift {

struct Floor {
  double us = 0;             // 0 where a ceiling is missing
  std::string_view ceiling;  // which one sets it: "dram", "int8"; of the ceilings' own names
};

// The larger of reading the stored weights once (a device: and x, and writing y, after "read start"), and of 2 M N K
// operations at the peak of the type that `activation` (a word of plans: "bf16", "nvfp4", "int8") multiplies in: e2m1
// values are small integers and may go through int8, fp8 and mx codes are exact in bf16, fp16 and fp32 are not.
Floor floor_of(const std::vector<Ceiling>& ceilings, const LayerSpec& layer, std::string_view activation, int64_t m);
// The type that a device multiplies such activations in where its ceilings do not name their own.
inline constexpr std::string_view device_peak = "bf16";

// Which ceiling arithmetic with these activations runs into.
std::string_view peak_of(std::string_view activation);

}  // namespace gearshift
