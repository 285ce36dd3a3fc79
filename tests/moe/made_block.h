// Expert blocks made of random codes, with the kernels that a list would choose.
#pragma once

#include <gtest/gtest.h>

#include "gearshift/moe.h"
#include "kernel/case_run.h"
#include "kernel/cpu/isa.h"
#include "kernel/schemes.h"

namespace gearshift::testing {

struct BlockShape {
  int64_t experts = 8, k = 64, hidden = 48, n = 64;
  bool gated = true, interleaved = false, bias = false, stacked = false;
};

// One projection of `experts` experts.
class MadeExperts {
 public:
  LayerPlan plan;
  PreparedLayer prepared;

  MadeExperts(const Named& named, int64_t experts, const std::vector<int64_t>& rows, int64_t k, const BlockShape& shape,
              uint64_t seed) {
    for (int64_t e = 0; e < experts; ++e)
      made_.push_back(std::make_unique<MadeLayer>(named, rows, k, seed * 1000 + static_cast<uint64_t>(e), shape.bias));
    LayerSpec& layer = plan.layer;
    layer = made_.front()->spec;
    layer.kind = LayerKind::experts;
    layer.experts = experts;
    layer.stacked = shape.stacked;
    if (shape.interleaved && rows.size() == 1) layer.row_order = RowOrder::interleaved;
    const std::vector<Module> modules = layer.modules;
    for (int64_t e = 1; e < experts && !shape.stacked; ++e)
      layer.modules.insert(layer.modules.end(), modules.begin(), modules.end());
    prepared.plan = &plan;
    for (const auto& made : made_) {
      LayerWeights weights = made->weights;
      weights.spec = &layer;
      prepared.weights.push_back(std::move(weights));
    }
  }
  MadeExperts(const MadeExperts&) = delete;

  // The first list line for few rows, where it has one, up to `few_rows` of an expert, and the first for any.
  void choose(int64_t few_rows) {
    const LayerSpec& layer = plan.layer;
    const DeviceProfile device = host_cpu().value();
    auto decision = std::make_shared<Decision>();
    for (const ListEntry& entry : builtin_registry().find(Platform::cpu, layer.family)->entries) {
      if (refuses(*entry.kernel, layer, device, DType::bf16)) continue;
      PlannedRange range;
      range.kernel = entry.kernel;
      if (entry.m_max != 0 && decision->ranges.empty() && few_rows > 0) {
        range.m_max = few_rows;
        decision->ranges.push_back(range);
      } else if (entry.m_max == 0) {
        range.m_min = decision->ranges.empty() ? 1 : decision->ranges.back().m_max + 1;
        decision->ranges.push_back(range);
        break;
      }
    }
    use(std::move(decision));
  }
  void use_only(const Kernel& kernel) {
    auto decision = std::make_shared<Decision>();
    decision->ranges.push_back({1, 0, &kernel, "static", ""});
    use(std::move(decision));
  }
  // One kernel for up to `few_rows` rows of an expert, another one above.
  void use_both(const Kernel& few, int64_t few_rows, const Kernel& many) {
    auto decision = std::make_shared<Decision>();
    decision->ranges.push_back({1, few_rows, &few, "static", ""});
    decision->ranges.push_back({few_rows + 1, 0, &many, "static", ""});
    use(std::move(decision));
  }

 private:
  void use(std::shared_ptr<const Decision> decision) {
    plan.decision = std::move(decision);
    for (const PlannedRange& range : plan.decision->ranges)
      ASSERT_TRUE(add_layout(prepared, *range.kernel->layout, 2).ok());
  }

  std::vector<std::unique_ptr<MadeLayer>> made_;
};

inline const Named& scheme_called(const std::string& name) {
  static const std::vector<Named> schemes = all_schemes();
  for (const Named& named : schemes) {
    if (named.name == name) return named;
  }
  throw std::runtime_error("no scheme " + name);
}

// Both projections.
class MadeBlock {
 public:
  BlockShape shape;
  MadeExperts first, second;
  ExpertFunction function;

  MadeBlock(const Named& named, const BlockShape& s, const ExpertFunction& f, uint64_t seed, int64_t few_rows = 8)
      : shape(s),
        first(named, s.experts, first_rows(s), s.k, s, seed),
        second(named, s.experts, {s.n}, s.hidden, s, seed + 1),
        function(f) {
    first.choose(few_rows);
    second.choose(few_rows);
  }
  ExpertBlock block() const {
    auto made = ExpertBlock::make(first.prepared, second.prepared, function);
    if (!made.ok()) throw std::runtime_error(made.error().message());
    return *std::move(made);
  }

 private:
  static std::vector<int64_t> first_rows(const BlockShape& s) {
    if (!s.gated) return {s.hidden};
    if (s.interleaved || s.stacked) return {2 * s.hidden};
    return {s.hidden, s.hidden};
  }
};

// What a router might say.
struct MadeRouting {
  int64_t tokens = 0, top_k = 0;
  std::vector<int32_t> experts;
  std::vector<float> weights;
  RoutedTokens view() const { return {tokens, top_k, experts.data(), weights.data()}; }
};

enum class Load { uniform, skewed, one_expert, first_half };

template <class Random>
MadeRouting made_routing(int64_t tokens, int64_t top_k, int64_t experts, Load load, Random& random) {
  MadeRouting routing{tokens, top_k, {}, {}};
  std::vector<double> shares(static_cast<size_t>(experts), 1.0);
  for (int64_t e = 0; e < experts; ++e) {
    double& share = shares[static_cast<size_t>(e)];
    if (load == Load::skewed) share = 1.0 / static_cast<double>(1 + (e * 7 + 3) % experts);
    if (load == Load::first_half && e > experts / 2) share = 0;
  }
  std::discrete_distribution<int32_t> draw(shares.begin(), shares.end());
  std::uniform_real_distribution<float> weight(0.05f, 1.0f);
  const auto only = static_cast<int32_t>(random() % static_cast<uint64_t>(experts));
  for (int64_t i = 0; i < tokens * top_k; ++i) {
    routing.experts.push_back(load == Load::one_expert ? only : draw(random));
    routing.weights.push_back(weight(random) / static_cast<float>(top_k));
  }
  return routing;
}

}  // namespace gearshift::testing
