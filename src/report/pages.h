// Pages for --html, one function each: data in, one self-contained HTML page out. All names are escaped.
#pragma once

#include <string>

#include "gearshift/pipeline.h"

namespace gearshift {

std::string plan_html(const Plan& plan);
std::string run_html(const RunReport& report);
std::string verify_html(const VerifyReport& report);

}  // namespace gearshift
