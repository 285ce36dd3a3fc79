#include "plan/rescue.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "layer/shard.h"
#include "plan/registry_rules.h"

namespace gearshift {
namespace {

// Smaller is better: does it run, as asked, with fast kernels?
std::tuple<bool, bool, bool> badness(const Selection& selection) {
  const auto& ranges = selection.decision.ranges;
  const bool slow =
      std::any_of(ranges.begin(), ranges.end(), [](const PlannedRange& range) { return is_slow(*range.kernel); });
  return {!selection.unserved.empty() || !selection.not_kept.empty(), selection.fallback != FallbackKind::none, slow};
}
bool is_good(const Selection& selection) { return badness(selection) == std::tuple(false, false, false); }

bool shape_refused(const Verdict& verdict) {
  constexpr std::array<std::string_view, 4> fields = {"n", "k", "partial_groups", "shard_offset"};
  return verdict.kind == VerdictKind::rejected && verdict.stage == Stage::layer &&
         std::find(fields.begin(), fields.end(), verdict.field) != fields.end();
}

Padding padding_for(const Contract& contract) {
  Padding padding;
  padding.n_min = contract.n.min;
  padding.n_multiple = contract.n.multiple;
  padding.k_min = contract.k.min;
  padding.k_multiple = contract.k.multiple;
  padding.whole_tiles = !contract.partial_groups || !contract.shard_offset;
  return padding;
}

std::string multiple_of(int64_t value) { return "a multiple of " + std::to_string(value); }

// "k 2752 mod 128 = 64".
std::string remainder(std::string_view field, int64_t found, int64_t multiple) {
  return std::string(field) + " " + std::to_string(found) + " mod " + std::to_string(multiple) + " = " +
         std::to_string(found % multiple);
}

std::string divided_field(const LayerSpec& layer) { return layer.shard->split == Split::row ? "k" : "n"; }

// What is awkward about the shard itself, whichever kernel runs it.
std::optional<PlannedRescue> own_rescue(const LayerSpec& layer, const Registry& registry) {
  const Shard& shard = *layer.shard;
  const std::string field = divided_field(layer);
  PlannedRescue rescue;
  rescue.n = layer.n;
  rescue.k = layer.k;
  rescue.field = field;
  const int64_t tile = scale_tile(layer), extent = divided_extent(layer);
  if (tile > 1 && extent % tile != 0) {
    const bool inside = tile % extent == 0 && !shard.offset;
    rescue.kind = inside ? Rescue::shared_scale_tile : Rescue::partial_group;
    rescue.extra_bytes = duplicated_scale_bytes(layer) + uneven_bytes(layer);
    rescue.found = std::to_string(extent);
    rescue.wanted = multiple_of(tile);
    rescue.reason = remainder(field, extent, tile) + ": ";
    if (inside)
      rescue.reason += std::to_string(tile / extent) + " ranks lie inside one scale tile and hold it each";
    else
      rescue.reason +=
          "the split cuts scale groups, which " +
          (registry.rules.rescues_shards ? "the kernel takes as they are"
                                         : "no gate of this kernel in " + described(registry) + " refuses");
    return rescue;
  }
  if (!shard.uneven) return std::nullopt;
  const int64_t whole = uneven_extent(layer);
  rescue.kind = Rescue::padding;
  rescue.extra_bytes = uneven_bytes(layer);
  rescue.found = std::to_string(whole);
  rescue.wanted = multiple_of(shard.tp);
  rescue.reason = remainder(field, whole, shard.tp) + ": the last rank is filled up with zeros";
  return rescue;
}

// Of an engine that divides evenly or not at all: no candidate serves the shard.
void refuse_uneven(const LayerSpec& layer, const Registry& registry, Selection& selection) {
  const int64_t whole = uneven_extent(layer), tp = layer.shard->tp;
  const std::string field = divided_field(layer);
  for (Verdict& verdict : selection.decision.candidates) {
    if (verdict.kind == VerdictKind::rejected && verdict.stage < Stage::layer) continue;
    verdict.kind = VerdictKind::rejected;
    verdict.stage = Stage::layer;
    verdict.field = field;
    verdict.found = std::to_string(whole);
    verdict.wanted = multiple_of(tp);
    verdict.reason = remainder(field, whole, tp) + ": " + described(registry) + " gives every rank an equal share";
  }
  selection.decision.ranges.clear();
  selection.unserved = BatchSet().complement();
}

// A locked row as the rescued layer would have been recorded: plans name a shard as it was before its rescue.
std::optional<RecordedLayer> as_rescued(const RecordedLayer* locked, const LayerSpec& layer) {
  if (locked == nullptr) return std::nullopt;
  RecordedLayer record = *locked;
  record.family = name(layer.family);
  record.n = layer.n;
  record.k = layer.k;
  return record;
}

// The selection with zeros around the shard, for what `verdict` refused; nullopt where zeros change nothing.
std::optional<Selection> with_padding(const LayerSpec& layer, const Verdict& verdict, const RequestRule& request,
                                      const ListRoute* route, const SelectionContext& context, Layouts layouts,
                                      const RecordedLayer* locked) {
  const LayerSpec filled = padded(layer, padding_for(verdict.kernel->contract));
  if (filled.n == layer.n && filled.k == layer.k) return std::nullopt;
  const std::optional<RecordedLayer> lock = as_rescued(locked, filled);
  Selection selection = select(filled, request, route, context, layouts, lock ? &*lock : nullptr);
  PlannedRescue rescue;
  rescue.kind = Rescue::padding;
  rescue.n = filled.n;
  rescue.k = filled.k;
  rescue.served = std::make_shared<const LayerSpec>(filled);
  rescue.extra_bytes = filled.weight_bytes - layer.weight_bytes + duplicated_scale_bytes(layer) + uneven_bytes(layer);
  // Where the split cuts scale groups, that is the number in the way, whichever field says so.
  const std::optional<PlannedRescue> own = own_rescue(layer, context.registry);
  rescue.field = own ? own->field : verdict.field;
  rescue.found = own ? own->found : verdict.found;
  rescue.wanted = own ? own->wanted : verdict.wanted;
  rescue.reason = std::string(verdict.kernel->name) + ": " + verdict.reason + "; filled up with zeros to " +
                  std::to_string(filled.n) + " x " + std::to_string(filled.k);
  selection.decision.rescue = std::move(rescue);
  return selection;
}

// The layer with 16-bit weights.
std::optional<Selection> dequantised(const LayerSpec& layer, const Selection& own, const RequestRule& request,
                                     const SelectionContext& context, const RecordedLayer* locked) {
  const bool drops_activations = layer.scheme.activation.has_value();
  if (!layer.scheme.quantized || (context.policy.arithmetic == Arithmetic::exact)) return std::nullopt;
  LayerSpec plain = layer;
  plain.scheme = Scheme{};
  plain.family = Family::bf16;
  if (plain.shard) plain.shard->offset = false;
  uint64_t elements = static_cast<uint64_t>(layer.n) * static_cast<uint64_t>(layer.k);
  elements *= static_cast<uint64_t>(std::max<int64_t>(layer.experts, 1));
  plain.weight_bytes = 2 * elements;
  for (Module& module : plain.modules) {
    module.tensors = {{TensorRole::weight, module.name + ".weight", DType::bf16, {module.n, layer.k}}};
  }
  const std::optional<RecordedLayer> lock = as_rescued(locked, plain);
  Selection selection = select(plain, request, nullptr, context, Layouts::one, lock ? &*lock : nullptr);
  if (!selection.unserved.empty() || !selection.not_kept.empty()) return std::nullopt;
  const Obstacle obstacle = obstacle_of(own.decision.candidates);
  PlannedRescue rescue;
  rescue.kind = Rescue::dequantised;
  rescue.served = std::make_shared<const LayerSpec>(plain);
  rescue.n = layer.n;
  rescue.k = layer.k;
  rescue.extra_bytes = plain.weight_bytes - std::min(plain.weight_bytes, layer.weight_bytes);
  rescue.field = obstacle.field;
  rescue.found = obstacle.found;
  rescue.wanted = obstacle.wanted;
  rescue.reason = "no kernel for " + std::string(name(layer.family)) + " takes " + std::to_string(layer.n) + " x " +
                  std::to_string(layer.k) + ": 16-bit weights are made once";
  selection.decision.rescue = std::move(rescue);
  if (drops_activations) selection.decision.differs = "activation_upgraded";
  return selection;
}

}  // namespace

std::string_view name(Rescue rescue) {
  switch (rescue) {
    case Rescue::partial_group:
      return "partial_group";
    case Rescue::padding:
      return "padding";
    case Rescue::shared_scale_tile:
      return "shared_scale_tile";
    case Rescue::dequantised:
      return "dequantised";
  }
  return "";
}

Obstacle obstacle_of(const std::vector<Verdict>& candidates) {
  auto verdict = std::find_if(candidates.begin(), candidates.end(), shape_refused);
  if (verdict == candidates.end()) verdict = candidates.begin();
  if (verdict == candidates.end()) return {};
  return {verdict->field, verdict->found, verdict->wanted};
}

bool serves_every_batch(const Decision& decision) {
  int64_t next = 1;
  for (const PlannedRange& range : decision.ranges) {
    if (range.m_min != next) return false;
    if (range.m_max == 0) return true;
    next = range.m_max + 1;
  }
  return false;
}

Selection select_rescued(const LayerSpec& layer, const RequestRule& request, const ListRoute* route,
                         const SelectionContext& context, Layouts layouts, const RecordedLayer* locked) {
  Selection own = select(layer, request, route, context, layouts, locked);
  const bool divided = layer.shard && layer.shard->split != Split::none && layer.shard->tp > 1;
  if (!divided) return own;
  if (!context.registry.rules.rescues_shards && layer.shard->uneven && !is_output_head(layer)) {
    refuse_uneven(layer, context.registry, own);
    return own;
  }
  own.decision.rescue = own_rescue(layer, context.registry);
  if (is_good(own) || !context.registry.rules.rescues_shards) return own;

  Selection best = own;
  for (const Verdict& verdict : own.decision.candidates) {
    if (!shape_refused(verdict)) continue;
    std::optional<Selection> filled = with_padding(layer, verdict, request, route, context, layouts, locked);
    if (filled && badness(*filled) < badness(best)) best = *std::move(filled);
  }
  if (best.unserved.empty() && best.not_kept.empty()) return best;
  std::optional<Selection> plain = dequantised(layer, own, request, context, locked);
  return plain ? *std::move(plain) : best;
}

}  // namespace gearshift
