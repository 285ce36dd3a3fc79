// data/vllm.json, as the build embeds it.
#pragma once

#include <string_view>

namespace gearshift::data {

std::string_view vllm_text();

}  // namespace gearshift::data
