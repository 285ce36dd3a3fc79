// Every option of every verb, as data: name, what it takes, help, and which verbs have it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace gearshift::cli {

enum Verb : uint32_t {
  kPlan = 1U << 0,
  kRun = 1U << 1,
  kVerify = 1U << 2,
  kTune = 1U << 3,
  kBench = 1U << 4,
  kQuantize = 1U << 5,
  kInspect = 1U << 6,
  kDiff = 1U << 7,
  kKernels = 1U << 8,
  kDevices = 1U << 9,
  kDoctor = 1U << 10,
  kStore = 1U << 11
};

struct OptionSpec {
  std::string_view name;      // long, without dashes
  std::string_view letters;   // "-o", or ""
  std::string_view argument;  // "B[,FAMILY=B...]"; "" for a flag
  uint32_t verbs;
  bool available;  // false: in the help, and refused by the library
  std::string_view help;
};
// In the order of the help pages.
std::span<const OptionSpec> all_options();
const OptionSpec* find_option(std::string_view name);

}  // namespace gearshift::cli
