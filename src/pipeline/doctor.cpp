#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnu/libc-version.h>
#include <pcre2.h>
#include <sqlite3.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/build_identity.h"
#include "base/text.h"
#include "base/try.h"
#include "device/cuda.h"
#include "kernel/cpu/isa.h"
#include "measure/made_up_layer.h"
#include "pipeline/environment.h"
#include "pipeline/options.h"

namespace gearshift {

namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

std::string dotted(int version, int base) {
  return fmt::format("{}.{}.{}", version / base / base, version / base % base, version % base);
}

Facts libraries() {
  char pcre2[64] = "";
  pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
  Facts facts = {{"glibc", gnu_get_libc_version()},
                 {"OpenMP", std::to_string(_OPENMP)},
                 {"PCRE2", pcre2},
                 {"nlohmann-json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                               NLOHMANN_JSON_VERSION_PATCH)},
                 {"fmt", dotted(FMT_VERSION, 100)},
                 {"SQLite", sqlite3_libversion()}};
  if (const std::string runtime = cuda::runtime_version(); !runtime.empty())
    facts.emplace_back("CUDA runtime", runtime);
  if (const std::string cublaslt = cuda::cublaslt_version(); !cublaslt.empty())
    facts.emplace_back("cuBLASLt", cublaslt);
  return facts;
}

Facts build_facts() {
  Facts facts = build_identity();
  std::vector<std::string> targets;
  for (Isa isa : code_paths()) targets.emplace_back(name(isa));
  facts.emplace_back("code targets", join(targets, ", "));
  facts.emplace_back("CUDA code targets", fmt::format("{}", fmt::join(cuda::code_targets(), " ")));
  return facts;
}

int64_t fit(int64_t size, const Bounds& bounds) {
  const int64_t multiple = std::max<int64_t>(1, bounds.multiple);
  const int64_t least = (std::max(size, bounds.min) + multiple - 1) / multiple * multiple;
  return bounds.max != 0 ? std::min(least, bounds.max / multiple * multiple) : least;
}

// The most common scheme of the kernel's family, with codes that the kernel takes.
Scheme launch_scheme(const Kernel& kernel) {
  Scheme scheme = common_scheme(kernel.families.front());
  const std::vector<Format>& formats = kernel.contract.weight_formats;
  if (!formats.empty() && std::find(formats.begin(), formats.end(), scheme.weight.format) == formats.end())
    scheme.weight.format = formats.front();
  return scheme;
}

// A layer of two unequal parts and no round row count, as far as the contract has it.
LaunchTest launch(const Kernel& kernel, const DeviceProfile& device, int threads) {
  LaunchTest test{std::string(kernel.name), false, ""};
  const int64_t n = fit(88, kernel.contract.n), k = fit(256, kernel.contract.k), m = fit(17, kernel.contract.m);
  const DType dtype = kernel.contract.dtypes.empty() ? DType::bf16 : kernel.contract.dtypes.front();
  std::vector<int64_t> parts = {n};
  if (n == 88) parts = {56, 32};
  const auto layer = make_up_layer(launch_scheme(kernel), parts, k, 1);
  if (const auto refusal = refuses(kernel, layer->plan.layer, device, dtype)) {
    test.note = "no made-up layer fits its contract: " + refusal->reason;
    return test;
  }
  if (const auto packed = use_kernel(*layer, kernel, threads); !packed) {
    test.note = packed.error().message();
    return test;
  }
  const Proof proof = prove(kernel, layer->prepared, m, dtype, 1, threads);
  test.ok = proof.comparison.ok;
  test.note = test.ok ? fmt::format("{} [{}x{}], M = {}: relative error {:.1e}", name(kernel.families.front()), n, k, m,
                                    proof.comparison.relative_error)
                      : proof.comparison.failure;
  return test;
}

// "PATH: 12 rows, 10 of them for this machine", and what is wrong with it.
std::string store_line(const std::string& path, const RunEnvironment& environment) {
  StoreFile store(path);
  if (store.off()) return "off: results are kept for the run that made them";
  const StoreCheck check = store.check(environment);
  std::string line = fmt::format("{}: {} rows, {} of them for this machine", path, check.rows, check.applying);
  for (const std::string& problem : check.problems) line += "; " + problem;
  return line;
}

// "portable", "avx512_vnni", "sm_80 sm_90a".
std::string targets_of(const Kernel& kernel) {
  if (kernel.contract.targets.empty()) return std::string(name(kernel.contract.isa));
  return fmt::format("{}", fmt::join(kernel.contract.targets, " "));
}

}  // namespace

Result<DoctorReport> doctor(const Options& options) {
  GEARSHIFT_TRY(const Settings settings, read_settings(options));
  DoctorReport report;
  GEARSHIFT_TRY(report.device, host_cpu(settings.max_isa));
  set_max_isa(report.device.isa);
  const std::vector<DeviceProfile> gpus = cuda_devices();
  if (!gpus.empty()) report.driver = gpus.front().driver;
  report.libraries = libraries();
  report.build = build_facts();
  report.store = store_line(settings.store, environment_of(report.device));
  const int threads = settings.threads > 0 ? settings.threads : std::max(1, report.device.cores);
  for (const KernelRow& row : list_kernels(report.device)) {
    const bool on_gpu = row.kernel->platform == Platform::cuda;
    const std::string kernel(row.kernel->name);
    const auto known = [&](const auto& entry) { return entry.first == kernel; };
    if (std::none_of(report.kernel_targets.begin(), report.kernel_targets.end(), known))
      report.kernel_targets.emplace_back(kernel, targets_of(*row.kernel));
    if (row.runnable)
      report.launch_tests.push_back(launch(*row.kernel, on_gpu ? gpus.front() : report.device, threads));
  }
  report.options = effective_options(options);
  return report;
}

}  // namespace gearshift
