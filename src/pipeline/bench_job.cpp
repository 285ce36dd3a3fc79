#include "pipeline/bench_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "base/try.h"
#include "measure/made_up_layer.h"
#include "measure/preset_scheme.h"
#include "pipeline/session.h"
#include "plan/policy_names.h"

namespace gearshift {

namespace {

ErrorInfo bench_usage(std::string subject, std::string found, std::string wanted, std::string hint = "") {
  return {ErrorCode::usage, std::move(subject), std::move(found), std::move(wanted), std::move(hint), {}};
}

// Call and command line over environment over file.
int weight_of_source(const Options& options, const std::string& name) {
  const auto found = options.find(name);
  if (found == options.end()) return -1;
  return found->second.source == "command line" ? 2 : found->second.source == "environment" ? 1 : 0;
}

// Of --shape and --model the one that was said closer to the call counts.
Result<bool> wants_model(const Options& options, const Settings& settings) {
  const bool model = !settings.model.empty(), shapes = !settings.shapes.empty(), moe = !settings.moe_shapes.empty();
  if (moe && (model || shapes))
    return bench_usage("--moe", model ? "--model beside it" : "--shape beside it", "one of the two");
  if (moe) return false;
  if (!model && !shapes)
    return bench_usage("bench", "nothing to time", "--shape N,K, --moe E,TOPK,N,K or --model DIR",
                       "for example --shape 4096,4096 --family nvfp4_w4a4");
  if (!model || !shapes) return model;
  const int of_model = weight_of_source(options, "model"), of_shapes = weight_of_source(options, "shape");
  if (of_model != of_shapes) return of_model > of_shapes;
  return bench_usage("--shape", "--model beside it", "one of the two");
}

// The schemes to make up: --scheme, else --family, else the first family of the forced kernel, else unquantized.
Result<std::vector<Scheme>> schemes_of(const Settings& settings) {
  std::vector<Scheme> schemes;
  for (const QuantizeRule& rule : settings.rules) {
    if (!rule.glob.empty())
      return bench_usage("--scheme", fmt::format("'{}={}'", printable(rule.glob), printable(rule.scheme)),
                         "scheme names without a pattern");
    for (const std::string& word : split(rule.scheme, ',')) {
      GEARSHIFT_TRY(const Scheme scheme, preset_scheme(word));
      schemes.push_back(scheme);
    }
  }
  if (!schemes.empty() && !settings.families.empty())
    return bench_usage("--scheme", "--family beside it", "one of the two",
                       "a family stands for its most common scheme");
  for (const Family family : settings.families) schemes.push_back(common_scheme(family));
  if (!schemes.empty()) return schemes;
  for (const KernelList& list : builtin_registry().lists) {
    for (const ListEntry& entry : list.entries) {
      if (entry.kernel->name == settings.policy.force_kernel && !settings.policy.force_kernel.empty())
        return std::vector<Scheme>{common_scheme(list.family)};
    }
  }
  return std::vector<Scheme>{common_scheme(Family::bf16)};
}

Result<void> add_shapes(BenchJob& job) {
  GEARSHIFT_TRY(job.schemes, schemes_of(job.settings));
  for (const auto& [n, k] : job.settings.shapes) {
    for (const Scheme& scheme : job.schemes) {
      BenchTarget target{made_up_spec(scheme, {n}, k, false, job.settings.policy.dtype), 1};
      target.layer.name = fmt::format("{},{} {}", n, k, scheme_name(scheme));
      job.targets.push_back(std::move(target));
    }
  }
  return {};
}

// Rows of one class are timed once.
void add_model(BenchJob& job, const Session& session) {
  std::map<std::string, size_t> seen;
  for (const LayerSpec& row : session.rows()) {
    const auto [found, fresh] = seen.emplace(layer_class(row), job.targets.size());
    if (fresh) {
      job.targets.push_back({row, 1});
    } else {
      ++job.targets[found->second].layers;
    }
  }
}

}  // namespace

Result<BenchJob> bench_job(const Options& options) {
  BenchJob job;
  GEARSHIFT_TRY(job.settings, read_settings(options));
  GEARSHIFT_TRY(const bool model, wants_model(options, job.settings));
  if (model) {
    if (!job.settings.rules.empty() || !job.settings.families.empty())
      return bench_usage(job.settings.rules.empty() ? "--family" : "--scheme", "--model beside it", "one of the two",
                         "the model says how its layers are quantized");
    GEARSHIFT_TRY(const Session session, Session::open(job.settings.model, options));
    GEARSHIFT_CHECK(session.require_whole_layers());
    job.settings = session.settings();
    job.device = session.device();
    // What is timed where nobody named a device is the processor.
    if (options.count("device") == 0) {
      GEARSHIFT_TRY(job.device, host_cpu(job.settings.max_isa));
    }
    if (job.device.present) GEARSHIFT_CHECK(use_device(job.device));
    job.model = session.model_layers();
    job.model_path = session.checkpoint().path();
    add_model(job, session);
  } else {
    GEARSHIFT_TRY(const DeviceProfile host, host_cpu(job.settings.max_isa));
    GEARSHIFT_TRY(job.device, find_device(job.settings.device, host));
    if (job.device.present) GEARSHIFT_CHECK(use_device(job.device));
    Policy& policy = job.settings.policy;
    policy.dtype = job.settings.dtype.value_or(DType::bf16);
    policy.threads = job.settings.threads > 0 ? job.settings.threads : std::max(1, host.cores);
    GEARSHIFT_CHECK(add_shapes(job));
  }
  GEARSHIFT_TRY(job.settings.policy, checked_policy(std::move(job.settings.policy), builtin_registry()));
  const bool timed = job.device.platform == Platform::cpu || job.device.platform == Platform::cuda;
  if (!job.device.present || !timed) {
    return bench_usage(fmt::format("--device {}", printable(job.settings.device)),
                       fmt::format("{}, which `bench` cannot time here", job.device.name), "a device of this machine",
                       "`gearshift plan` plans for absent devices; `gearshift devices` lists both");
  }
  return job;
}

}  // namespace gearshift
