// What the command prints for people, one function each: data in, text of at most `width` columns out.
#pragma once

#include <string>

#include "gearshift/pipeline.h"

namespace gearshift {

std::string plan_text(const Plan& plan, size_t width);
std::string group_text(const GroupPlan& group, size_t width);
std::string run_text(const RunReport& report, size_t width);
std::string verify_text(const VerifyReport& report, size_t width);
std::string tune_text(const TuneReport& report, size_t width);
std::string store_text(const StoreReport& report, size_t width);
std::string bench_text(const BenchReport& report, size_t width);
std::string inspect_text(const InspectReport& report, size_t width);
std::string kernels_text(const std::vector<KernelRow>& rows, size_t width);
std::string devices_text(const std::vector<DeviceProfile>& devices, size_t width);
std::string doctor_text(const DoctorReport& report, size_t width);
std::string quantize_text(const QuantizeReport& report, size_t width);
std::string lint_text(const Registry& registry, const std::vector<LintFinding>& findings, size_t width);
std::string diff_text(const PlanRecord& before, const PlanRecord& after, const PlanComparison& comparison,
                      size_t width);

// Every candidate of the layer called `layer` (a row, or a part of one), stage by stage. Error usage: no such layer;
// names near ones.
Result<std::string> explain_text(const Plan& plan, const std::string& layer, size_t width);

}  // namespace gearshift
