#include "plan/lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "plan/arithmetic.h"

namespace gearshift {
namespace {

// Another layer under the same name.
std::string other_layer(const RecordedLayer& record, const LayerSpec& layer) {
  const auto words = [](std::string_view family, int64_t n, int64_t k, int64_t experts) {
    return fmt::format("{} {} x {}{}", family, n, k,
                       experts > 0 ? fmt::format(" of {} expert{}", experts, experts == 1 ? "" : "s") : "");
  };
  const std::string here = words(name(layer.family), layer.n, layer.k, layer.experts);
  const std::string there = words(printable(record.family), record.n, record.k, record.experts);
  return here == there ? "" : "is " + here + " here and " + there + " in the locked plan";
}

std::string why_not(const RecordedRange& range, BatchRange batches, const GatedCandidate& candidate,
                    const Choice& choice) {
  const Kernel& kernel = kernel_of(candidate);
  if (candidate.refusal) return candidate.refusal->reason;
  if (!candidate.allowed.contains(batches)) return "serves " + text(candidate.allowed) + " here";
  if (kernel.layout->name != range.layout)
    return fmt::format("reads layout {} in this build, and {} in the locked plan", kernel.layout->name,
                       printable(range.layout));
  const std::string_view activation = activation_word(kernel, choice.layer, choice.context.policy.dtype);
  if (activation != range.activation)
    return fmt::format("multiplies {} activations here, and {} in the locked plan", activation,
                       printable(range.activation));
  return "";
}

}  // namespace

Pinned pin(const RecordedLayer& record, const Choice& choice) {
  Pinned pinned;
  if (std::string other = other_layer(record, choice.layer); !other.empty()) {
    pinned.refusals.push_back(std::move(other));
    return pinned;
  }
  for (const RecordedRange& range : record.ranges) {
    const BatchRange batches = batch_range(range.m_min, range.m_max).value_or(BatchRange{});
    const auto refuse = [&](const std::string& reason) {
      pinned.refusals.push_back(printable(range.kernel) + " for " + text(batches) + ": " + reason);
    };
    const auto candidate =
        std::find_if(choice.candidates.begin(), choice.candidates.end(), [&](const GatedCandidate& known) {
          return kernel_of(known).name == range.kernel && kernel_of(known).backend == range.backend;
        });
    if (candidate == choice.candidates.end()) {
      refuse(fmt::format("is not registered for {} on {} in this build", name(choice.layer.family),
                         name(choice.context.device.platform)));
      continue;
    }
    if (const std::string reason = why_not(range, batches, *candidate, choice); !reason.empty()) {
      refuse(reason);
      continue;
    }
    const auto& tactics = kernel_of(*candidate).tactics;
    const auto tactic = std::find(tactics.begin(), tactics.end(), range.tactic);
    if (!range.tactic.empty() && tactic == tactics.end()) {
      refuse("has no tactic " + printable(range.tactic) + " in this build");
      continue;
    }
    const Layout* layout = kernel_of(*candidate).layout;
    if (layout != &checkpoint_layout) {
      const bool second = pinned.layout.packed != nullptr && pinned.layout.packed != layout;
      if (second && choice.context.policy.memory_budget == 0) {
        refuse(fmt::format("packs {} beside {}, and weights are packed once without --memory-budget", layout->name,
                           pinned.layout.packed->name));
        continue;
      }
      pinned.layout.several = pinned.layout.several || second;
      if (!second) pinned.layout.packed = layout;
    }
    // A measured choice stays one: its batch size is the first of the range.
    pinned.layout.assignments.push_back({batches, static_cast<size_t>(candidate - choice.candidates.begin()),
                                         range.source == "measured" ? batches.min : 0,
                                         tactic == tactics.end() ? std::string_view() : *tactic});
  }
  return pinned;
}

}  // namespace gearshift
