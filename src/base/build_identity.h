// Which build this is: results are comparable only within one.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gearshift {

std::vector<std::pair<std::string, std::string>> build_identity();

}  // namespace gearshift
