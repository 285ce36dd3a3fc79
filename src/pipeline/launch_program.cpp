// What the child process of isolation.h does.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

#include "base/text.h"
#include "base/try.h"
#include "gearshift/pipeline.h"
#include "measure/trial.h"
#include "pipeline/session.h"
#include "prepare/prepare_shard.h"

namespace gearshift {

namespace {

const Kernel* kernel_named(const Registry& registry, Platform platform, Family family, std::string_view kernel) {
  const KernelList* list = registry.find(platform, family);
  if (list == nullptr) return nullptr;
  for (const ListEntry& entry : list->entries) {
    if (entry.kernel->name == kernel) return entry.kernel;
  }
  return nullptr;
}

void say(const char* what, int64_t m) {
  std::printf("%s %lld\n", what, static_cast<long long>(m));
  std::fflush(stdout);
}

struct Packed {
  std::unique_ptr<PreparedShard> shard;  // of a divided layer the first one, which stands for all
  std::optional<PreparedLayer> layer;    // else the layer
  const PreparedLayer& get() const { return shard ? shard->layer : *layer; }
};

Result<Packed> packed(const LayerPlan& plan, const Session& session) {
  Packed out;
  if (is_divided(plan.layer)) {
    GEARSHIFT_TRY(const std::vector<LayerWeights> whole, bind_whole(session.checkpoint(), plan.layer));
    GEARSHIFT_TRY(out.shard, prepare_shard(whole, plan, 0, session.threads()));
  } else {
    GEARSHIFT_TRY(out.layer, prepare(session.checkpoint(), plan, session.threads()));
  }
  return out;
}

Result<void> launch_at(const std::vector<std::string>& sizes, const Kernel& kernel,
                       const std::vector<std::string>& tactics, const LayerPlan& plan, const Session& session) {
  const int64_t first = parse_integer(sizes.front()).value_or(0);
  say("pack", first);
  const Result<Packed> made = packed(plan, session);
  say("end", first);
  if (!made.ok()) return made.error();
  const PreparedLayer& prepared = made->get();
  for (const std::string& word : sizes) {
    const int64_t m = parse_integer(word).value_or(0);
    // As the proof launches it: NaN around and inside what it may touch.
    Trial trial(prepared.weights.front(), m, session.dtype(), session.settings().seed, session.threads(), 0);
    for (const std::string& tactic : tactics) {
      say("begin", m);
      trial.launch(kernel, prepared, Poison::nan, 0, tactic);
      say("end", m);
    }
  }
  return {};
}

Result<void> launch_in_this_process(const std::vector<std::string>& words) {
  Options options;
  for (size_t i = 4; i < words.size(); ++i) {
    const size_t equals = words[i].find('=');
    OptionValue& option = options[words[i].substr(0, equals)];
    option.values.push_back(words[i].substr(equals + 1));
    option.source = "call";
  }
  GEARSHIFT_TRY(Session session, Session::open(words[0], options));
  GEARSHIFT_CHECK(session.require_device());
  GEARSHIFT_CHECK(session.settle_column_orders());
  const auto layer = std::find_if(session.rows().begin(), session.rows().end(),
                                  [&](const LayerSpec& row) { return row.name == words[1]; });
  if (layer == session.rows().end()) return unknown_layer("layer", words[1], session.rows());
  const size_t slash = words[2].find('/');
  const std::vector<std::string> tactics = split(slash == std::string::npos ? "" : words[2].substr(slash + 1), ',');
  const auto row = static_cast<size_t>(layer - session.rows().begin());
  GEARSHIFT_TRY(const Plan plan, session.plan_row(session.registry(), row, "static"));
  const auto& rescue = plan.layers[0].decision->rescue;
  const Family family = rescue && rescue->served ? rescue->served->family : layer->family;
  const Kernel* kernel = kernel_named(session.registry(), session.device().platform, family, words[2].substr(0, slash));
  if (kernel == nullptr) return ErrorInfo{ErrorCode::usage, "kernel", words[2], "a kernel of this build", "", {}};
  // This kernel's layout and no other: packing is the first that may go wrong.
  LayerPlan own = plan.layers[0];
  auto decision = std::make_shared<Decision>(*own.decision);
  PlannedRange everything;
  everything.kernel = kernel;
  decision->ranges = {everything};
  own.decision = std::move(decision);
  return launch_at(split(words[3], ','), *kernel, tactics, own, session);
}

}  // namespace

int launch_program(int argc, char** argv) {
  // Nobody waits for a child whose parent is gone.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == 1 || argc < 5) return 2;
  return launch_in_this_process({argv + 1, argv + argc}).ok() ? 0 : 1;
}

}  // namespace gearshift
