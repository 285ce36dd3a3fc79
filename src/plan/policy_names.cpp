#include "plan/policy_names.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "base/try.h"

namespace gearshift {
namespace {

using Names = std::vector<std::string_view>;

Names sorted(std::set<std::string_view> names) { return {names.begin(), names.end()}; }

Names kernel_names(const Registry& registry) {
  std::set<std::string_view> names;
  for (const KernelList& list : registry.lists)
    for (const ListEntry& entry : list.entries) names.insert(entry.kernel->name);
  return sorted(std::move(names));
}

Names backend_names(const Registry& registry) {
  const auto known = known_backends();
  std::set<std::string_view> names(known.begin(), known.end());
  for (const KernelList& list : registry.lists)
    for (const ListEntry& entry : list.entries) names.insert(entry.kernel->backend);
  names.erase("");  // kernels that no request can name
  return sorted(std::move(names));
}

std::string listed(const Names& names) { return join(std::vector<std::string>(names.begin(), names.end()), ", "); }

bool has(const Names& names, std::string_view word) {
  return std::find(names.begin(), names.end(), word) != names.end();
}

// "FlashInfer-CUTLASS" -> "flashinfer_cutlass".
std::string folded(std::string_view backend) {
  std::string word = lower(backend);
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

struct BackendNames {
  Names valid;
  bool folds = false;
};

Result<void> check_backend(std::string& backend, const std::string& option, const BackendNames& names) {
  const Names& backends = names.valid;
  if (backend.empty()) backend = "auto";
  if (names.folds) backend = folded(backend);
  if (!has(backends, backend)) return unknown_name(option, "a backend", backend, backends);
  return {};
}

Result<void> check_choice(BackendChoice& choice, const std::string& option, const BackendNames& backends) {
  GEARSHIFT_CHECK(check_backend(choice.global, option, backends));
  for (auto& [family, backend] : choice.families) GEARSHIFT_CHECK(check_backend(backend, option, backends));
  return {};
}

Result<void> check_disabled(const std::vector<std::string>& disable, const Names& kernels, const Names& backends) {
  Names valid;
  for (Family family : all_families()) valid.push_back(name(family));
  valid.insert(valid.end(), kernels.begin(), kernels.end());
  std::copy_if(backends.begin(), backends.end(), std::back_inserter(valid),
               [](std::string_view backend) { return backend != "auto"; });
  for (const std::string& item : disable) {
    const bool pattern = item.find('*') != std::string::npos;
    if (!pattern && !has(valid, item)) return unknown_name("--disable", "a kernel, backend or family", item, valid);
  }
  return {};
}

}  // namespace

ErrorInfo unknown_name(std::string option, std::string_view what, const std::string& word,
                       const std::vector<std::string_view>& valid) {
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = std::move(option);
  error.found = "'" + printable(word) + "'";
  error.wanted = std::string(what) + ": " + listed(valid);
  const std::vector<std::string> near = near_names(word, valid);
  if (!near.empty()) error.hint = "did you mean " + join(near, ", ") + "?";
  return error;
}

ErrorInfo wrong_value(std::string option, std::string found, std::string wanted) {
  ErrorInfo error;
  error.code = ErrorCode::usage;
  error.subject = std::move(option);
  error.found = std::move(found);
  error.wanted = std::move(wanted);
  return error;
}

Result<Policy> checked_policy(Policy policy, const Registry& registry) {
  const Names kernels = kernel_names(registry);
  BackendNames backends{backend_names(registry), registry.rules.folds_backend_names};
  if (!has(backends.valid, "auto")) backends.valid.insert(backends.valid.begin(), "auto");

  GEARSHIFT_CHECK(check_choice(policy.linear, "--linear-backend", backends));
  GEARSHIFT_CHECK(check_choice(policy.moe, "--moe-backend", backends));
  for (auto& [glob, backend] : policy.layers)
    GEARSHIFT_CHECK(check_backend(backend, "--layer " + printable(glob), backends));
  GEARSHIFT_CHECK(check_disabled(policy.disable, kernels, backends.valid));
  if (!policy.force_kernel.empty() && !has(kernels, policy.force_kernel))
    return unknown_name("--kernel", "a kernel", policy.force_kernel, kernels);

  if (policy.selection != "static" && policy.selection != "measured")
    return wrong_value("--selection", "'" + printable(policy.selection) + "'", "static or measured");
  if (policy.dtype != DType::bf16 && policy.dtype != DType::f16 && policy.dtype != DType::f32)
    return wrong_value("--dtype", std::string(name(policy.dtype)), "bf16, fp16 or fp32");
  std::sort(policy.batch.begin(), policy.batch.end());
  policy.batch.erase(std::unique(policy.batch.begin(), policy.batch.end()), policy.batch.end());
  if (!policy.batch.empty() && policy.batch.front() < 1)
    return wrong_value("--batch", std::to_string(policy.batch.front()), "batch sizes from 1 up");
  return policy;
}

}  // namespace gearshift
