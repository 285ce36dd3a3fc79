// What the lists of a registry promise, asked of known devices and sample layers.
#include <algorithm>
#include <set>

#include "base/text.h"
#include "gearshift/plan.h"
#include "plan/arithmetic.h"
#include "plan/gates.h"
#include "plan/sample_layers.h"

namespace gearshift {
namespace {

bool is_portable(const Kernel& kernel) { return kernel.backend == "emulation" || kernel.backend == "reference"; }

// A device and a layer, by number, for which a line's contract holds.
using Case = std::pair<size_t, size_t>;

struct Cases {
  std::vector<const DeviceProfile*> devices;
  std::vector<LayerSpec> layers;
};

// Names of devices, few and in order.
std::string words(const std::set<std::string>& names) {
  constexpr size_t kShown = 6;
  std::vector<std::string> shown(names.begin(),
                                 std::next(names.begin(), std::min<std::ptrdiff_t>(kShown, std::ssize(names))));
  return join(shown, ", ") + (names.size() > kShown ? " and " + std::to_string(names.size() - kShown) + " more" : "");
}

template <class T, class Same>
bool covers(const std::vector<T>& outer, const std::vector<T>& inner, const Same& same) {
  return std::all_of(inner.begin(), inner.end(), [&](const T& item) {
    return std::any_of(outer.begin(), outer.end(), [&](const T& other) { return same(item, other); });
  });
}

// Wherever `later` may be installed and switched on, `earlier` may too.
bool needs_no_more(const Kernel& earlier, const Kernel& later) {
  const Contract &a = earlier.contract, &b = later.contract;
  const auto same_fact = [](const FactTest& x, const FactTest& y) {
    return x.fact == y.fact && x.kind == y.kind && x.value == y.value;
  };
  return covers(b.packages, a.packages, std::equal_to<>()) && covers(b.facts, a.facts, same_fact);
}

class ListLint {
 public:
  ListLint(const Registry& registry, const KernelList& list, const std::vector<DeviceProfile>& devices,
           const Assumptions& all, std::vector<LintFinding>& findings)
      : registry_(registry), list_(list), findings_(findings) {
    for (const DeviceProfile& device : devices)
      if (device.platform == list.platform) cases_.devices.push_back(&device);
    // What a list promises does not depend on what this build has code for.
    for (const ListEntry& entry : list.entries) kernels_.emplace_back(*entry.kernel).contract.targets.clear();
    cases_.layers = sample_layers(list.family, list.kind);
    served_.resize(list.entries.size());
    admitted_.resize(list.entries.size());
    for (size_t d = 0; d < cases_.devices.size(); ++d) {
      for (size_t l = 0; l < cases_.layers.size(); ++l) ask(d, l, all);
    }
  }

  void run() {
    for (size_t i = 0; i < list_.entries.size(); ++i) {
      portable_last(i);
      native_first(i);
      on_request_behind(i);
      reachable(i);
      device_gate(i);
      verified(i);
    }
  }

 private:
  const Kernel& kernel(size_t line) const { return kernels_[line]; }
  bool on_request(size_t line) const { return list_.entries[line].on_request; }

  void ask(size_t d, size_t l, const Assumptions& all) {
    const LayerCase layer_case{cases_.layers[l], *cases_.devices[d], DType::bf16, all};
    if (registry_.find(layer_case) != &list_) return;
    for (size_t i = 0; i < list_.entries.size(); ++i) {
      if (!refuses(kernel(i), layer_case)) served_[i].insert({d, l});
      if (!refuses(kernel(i), layer_case, Stage::device)) admitted_[i].insert(d);
    }
  }

  std::set<std::string> archs(const std::set<Case>& cases) const {
    std::set<std::string> names;
    for (const auto& [d, l] : cases) names.insert(cases_.devices[d]->arch);
    return names;
  }
  std::set<Case> common(size_t a, size_t b) const {
    std::set<Case> both;
    std::set_intersection(served_[a].begin(), served_[a].end(), served_[b].begin(), served_[b].end(),
                          std::inserter(both, both.end()));
    return both;
  }

  void add(std::string_view rule, size_t line, std::string text) {
    findings_.push_back({std::string(rule), std::string(name(list_.platform)), std::string(name(list_.family)),
                         list_.kind == LayerKind::experts ? "experts" : "linear", std::string(kernel(line).name),
                         std::move(text)});
  }

  void portable_last(size_t line) {
    if (!is_portable(kernel(line))) return;
    std::vector<std::string> behind;
    for (size_t i = line + 1; i < list_.entries.size(); ++i)
      if (!is_portable(kernel(i)) && !on_request(i)) behind.emplace_back(kernel(i).name);
    if (!behind.empty()) add("portable_last", line, "stands before " + join(behind, ", "));
  }

  void native_first(size_t line) {
    if (kernel(line).activation != ActivationUse::float16 || is_portable(kernel(line)) || on_request(line)) return;
    for (size_t i = line + 1; i < list_.entries.size(); ++i) {
      if (kernel(i).activation == ActivationUse::float16 || is_portable(kernel(i)) || on_request(i)) continue;
      std::set<Case> both;
      for (const Case& one : common(line, i))
        if (cases_.layers[one.second].scheme.activation) both.insert(one);
      if (!both.empty())
        add("native_before_weight_only", line,
            "leaves activations unquantized and stands before " + std::string(kernel(i).name) + " on " +
                words(archs(both)));
    }
  }

  void on_request_behind(size_t line) {
    if (!on_request(line)) return;
    const bool first = std::none_of(list_.entries.begin(), std::next(list_.entries.begin(), std::ptrdiff_t(line)),
                                    [](const ListEntry& entry) { return !entry.on_request; });
    if (first && list_.entries.size() > 1)
      add("opt_in_behind", line, "is chosen on request only, and stands before what it challenges");
  }

  // A line that others leave nothing to, on each device that it is for. What is portable is there for when others fail.
  void reachable(size_t line) {
    if (is_portable(kernel(line)) || on_request(line) || served_[line].empty()) return;
    std::set<size_t> open, closed;
    std::set<std::string> before;
    for (const Case& one : served_[line]) {
      const auto shadow = [&](size_t i) {
        const ListEntry& entry = list_.entries[i];
        // Behind a native kernel one that leaves activations as they come is another gear: measurements may choose it.
        const bool other_gear = upgrades_activations(kernel(line), cases_.layers[one.second]) &&
                                !upgrades_activations(kernel(i), cases_.layers[one.second]);
        // A policy of equal bits leaves nothing to those that do not promise them.
        const bool other_promise = kernel(line).contract.bits_same_for_any_m && !kernel(i).contract.bits_same_for_any_m;
        return !other_gear && !other_promise && !entry.on_request && entry.m_min <= 1 && entry.m_max == 0 &&
               served_[i].count(one) != 0 && needs_no_more(kernel(i), kernel(line));
      };
      size_t i = 0;
      while (i < line && !shadow(i)) ++i;
      if (i < line) before.emplace(kernel(i).name);
      (i < line ? closed : open).insert(one.first);
    }
    std::set<std::string> devices;
    for (const size_t d : closed)
      if (open.count(d) == 0) devices.insert(cases_.devices[d]->arch);
    if (!devices.empty())
      add("reachable", line,
          std::string(open.empty() ? "is never chosen: " : "is never chosen on " + words(devices) + ": ") +
              words(before) + " before it accepts whatever it does and needs nothing more");
  }

  // Without a word about devices a kernel is chosen where nobody has run it.
  void device_gate(size_t line) {
    const Kernel& own = kernel(line);
    if (list_.platform == Platform::cpu || is_portable(own) || cases_.devices.size() < 2) return;
    if (own.platform != list_.platform || admitted_[line].size() < cases_.devices.size()) return;
    add("device_gate", line,
        "accepts every device of " + std::string(name(list_.platform)) +
            (own.contract.packages.empty()
                 ? ""
                 : " where " + words({own.contract.packages.begin(), own.contract.packages.end()}) +
                       " can be imported"));
  }

  // Adding a kernel must change no plan on devices that it is not verified on: those that are verified there stand
  // first. Where none is, or only what is portable, any is a start, and is checked there before it is used.
  void verified(size_t line) {
    if (list_.platform == Platform::cpu || on_request(line)) return;
    std::set<Case> taken;
    for (const Case& one : served_[line]) {
      const DeviceProfile& device = *cases_.devices[one.first];
      if (is_verified_on(kernel(line), device)) continue;
      for (size_t i = line + 1; i < list_.entries.size(); ++i) {
        const bool passed_over = served_[i].count(one) != 0 && !on_request(i) && !is_portable(kernel(i));
        if (passed_over && is_verified_on(kernel(i), device)) taken.insert(one);
      }
    }
    if (!taken.empty())
      add("verified_devices_only", line,
          "is chosen before others on " + words(archs(taken)) + ", where it is not verified");
  }

  const Registry& registry_;
  const KernelList& list_;
  std::vector<LintFinding>& findings_;
  std::vector<Kernel> kernels_;  // by line
  Cases cases_;
  std::vector<std::set<Case>> served_;      // by line
  std::vector<std::set<size_t>> admitted_;  // by line: devices
};

// What lies in the rules around the lists.
void lint_rules(const Registry& registry, std::vector<LintFinding>& findings) {
  const RegistryRules& rules = registry.rules;
  const auto add = [&](std::string_view rule, std::string_view kernel, std::string text) {
    findings.push_back({std::string(rule), "", "", "", std::string(kernel), std::move(text)});
  };
  if (rules.linear.not_covered != rules.experts.not_covered || rules.linear.not_usable != rules.experts.not_usable)
    add("one_fallback_rule", "",
        "a request that nothing serves falls back for one kind of layers and is refused for the other");
  std::set<std::string_view> bypassing;
  for (const Force& force : rules.forces)
    if (force.past_disabled) bypassing.insert(force.kernel);
  for (const std::string_view kernel : bypassing)
    add("deny_list_everywhere", kernel, "is forced by a rule that does not ask whether it is disabled");
  std::set<std::string_view> present;
  const auto look = [&](const std::vector<FactTest>& tests) {
    for (const FactTest& test : tests)
      if (test.kind == FactTest::Kind::given || test.kind == FactTest::Kind::not_given) present.insert(test.fact);
  };
  for (const Move& move : rules.moves) look(move.when.facts);
  for (const Force& force : rules.forces) look(force.when.facts);
  for (const ListRoute& route : rules.routes) look(route.when.facts);
  for (const std::string_view fact : present)
    add("value_not_presence", "", std::string(fact) + " changes the order by being set at all, whatever its value");
}

}  // namespace

std::vector<LintFinding> lint_registry(const Registry& registry, const std::vector<DeviceProfile>& devices) {
  Assumptions all;
  for (const std::string_view package : registry.packages) all.packages.emplace_back(package);
  std::sort(all.packages.begin(), all.packages.end());
  for (const Fact& fact : registry.facts) all.facts.emplace(fact.name, fact.value);
  std::vector<LintFinding> findings;
  for (const KernelList& list : registry.lists) ListLint(registry, list, devices, all, findings).run();
  lint_rules(registry, findings);
  return findings;
}

}  // namespace gearshift
