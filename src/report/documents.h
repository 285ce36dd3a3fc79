// The JSON documents of the command, one function each: data in, text out. Keys and null rules are the contract that
// scripts read; equal data gives equal bytes.
#pragma once

#include <string>

#include "gearshift/pipeline.h"

namespace gearshift {

std::string plan_json(const Plan& plan, size_t depth = 0);            // gearshift.plan/1
std::string group_json(const GroupPlan& group);                       // gearshift.group/1
std::string run_json(const RunReport& report);                        // gearshift.run/1
std::string verify_json(const VerifyReport& report);                  // gearshift.verify/1
std::string tune_json(const TuneReport& report);                      // gearshift.tune/1
std::string store_json(const StoreReport& report);                    // gearshift.store/1
std::string bench_json(const BenchReport& report);                    // gearshift.bench/1
std::string inspect_json(const InspectReport& report);                // gearshift.inspect/1
std::string kernels_json(const std::vector<KernelRow>& rows);         // gearshift.kernels/1
std::string devices_json(const std::vector<DeviceProfile>& devices);  // gearshift.devices/1
std::string doctor_json(const DoctorReport& report);                  // gearshift.doctor/1
std::string quantize_json(const QuantizeReport& report);              // gearshift.quantize/1
std::string lint_json(const Registry& registry, const std::vector<LintFinding>& findings);  // gearshift.lint/1
// docs/kernels.md: the support matrix as Markdown.
std::string kernels_markdown(const Registry& registry);
// gearshift.diff/1
std::string diff_json(const PlanRecord& before, const PlanRecord& after, const PlanComparison& comparison);

}  // namespace gearshift
