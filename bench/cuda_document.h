// The gearshift.bench/1 document of a benchmark of CUDA kernels: what was run, when, where, and what the rows are held
// to.
#pragma once

#include <fmt/format.h>

#include <ctime>
#include <string>

#include "base/build_identity.h"
#include "device/cuda.h"
#include "read_floor.h"

namespace gearshift::bench {

inline std::string command_line(std::string words, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) words += " " + std::string(argv[i]);
  return words;
}

inline std::string date_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

// `rows`: JSON objects with commas between them.
inline std::string cuda_document(const std::string& command, const DeviceProfile& device, const ReadCeiling& ceiling,
                                 const std::string& rows) {
  const cuda::Clocks clocks = cuda::clocks(device.index);
  std::string build;
  for (const auto& [fact, value] : build_identity())
    build += fmt::format("{}\"{}\": \"{}\"", build.empty() ? "" : ", ", fact, value);
  return fmt::format(
      "{{\n  \"schema\": \"gearshift.bench/1\",\n  \"command\": \"{}\", \"date\": \"{}\",\n"
      "  \"device\": {{\"name\": \"{}\", \"arch\": \"{}\", \"multiprocessors\": {}}},\n"
      "  \"clocks\": {{\"multiprocessor_mhz\": {}, \"memory_mhz\": {}}},\n"
      "  \"driver\": \"{}\", \"cublaslt\": \"{}\", \"cuda_runtime\": \"{}\",\n  \"build\": {{{}}},\n"
      "  \"ceilings\": [{{\"name\": \"read start\", \"unit\": \"us\", \"value\": {:.3f}}}, {{\"name\": \"dram "
      "read\", \"unit\": \"GB/s\", \"value\": {:.1f}}}],\n  \"rows\": [\n{}\n  ]\n}}\n",
      command, date_now(), device.name, device.arch, device.cores, clocks.multiprocessor_mhz, clocks.memory_mhz,
      device.driver, cuda::cublaslt_version(), cuda::runtime_version(), build, ceiling.start_us, ceiling.gbytes_per_s,
      rows);
}

}  // namespace gearshift::bench
