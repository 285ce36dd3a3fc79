#include "prepare/prepare_shard.h"

#include <algorithm>

#include "base/try.h"
#include "format/bf16.h"
#include "kernel/parts.h"
#include "kernel/reference/decode.h"
#include "prepare/bad_value.h"

namespace gearshift {
namespace {

// The rank's weights as 16-bit numbers; what activations would be multiplied by first becomes part of them.
std::unique_ptr<CutWeights> as_bf16(const CutWeights& cut, const LayerSpec& target) {
  auto out = std::make_unique<CutWeights>();
  out->spec = target;
  out->weights.spec = &out->spec;
  const auto k = static_cast<size_t>(target.k);
  std::vector<float> scratch(k);
  std::vector<double> row(k);
  for (size_t p = 0; p < cut.weights.parts.size(); ++p) {
    const PartWeights& from = cut.weights.parts[p];
    const StoredWeights stored(cut.weights, p);
    std::vector<uint8_t>& bytes = out->bytes.emplace_back(static_cast<size_t>(from.n) * k * 2);
    for (int64_t n = 0; n < from.n; ++n) {
      decode_row(stored, n, scratch.data(), row.data());
      for (size_t i = 0; i < k; ++i) {
        double value = row[i];
        if (!from.pre_scale.empty())
          value *= read_number(from.pre_scale, from.pre_scale_dtype, static_cast<int64_t>(i));
        const uint16_t code = format::encode_bf16(static_cast<float>(value));
        const size_t at = (static_cast<size_t>(n) * k + i) * 2;
        bytes[at] = static_cast<uint8_t>(code & 0xFF);
        bytes[at + 1] = static_cast<uint8_t>(code >> 8);
      }
    }
    PartWeights part;
    part.n = from.n;
    part.weight = bytes;
    part.weight_dtype = DType::bf16;
    part.bias = from.bias;
    part.bias_dtype = from.bias_dtype;
    out->weights.parts.push_back(part);
  }
  return out;
}

}  // namespace

bool is_divided(const LayerSpec& layer) {
  return layer.shard && layer.shard->tp > 1 && layer.shard->split != Split::none;
}

Result<std::vector<LayerWeights>> bind_whole(const Checkpoint& checkpoint, const LayerSpec& shard,
                                             std::vector<std::string>* notes) {
  const LayerSpec& whole = *shard.shard->whole;
  std::vector<LayerWeights> experts;
  for (int64_t expert = 0; expert < std::max<int64_t>(1, whole.experts); ++expert) {
    GEARSHIFT_TRY(LayerWeights weights, bind_weights(checkpoint, whole, expert, notes));
    experts.push_back(std::move(weights));
  }
  return experts;
}

Result<std::unique_ptr<PreparedShard>> prepare_shard(const std::vector<LayerWeights>& whole, const LayerPlan& plan,
                                                     int64_t rank, int threads) {
  auto shard = std::make_unique<PreparedShard>();
  shard->plan = plan;
  const auto& rescue = plan.decision->rescue;
  const bool dequantised = rescue && rescue->kind == Rescue::dequantised;
  if (rescue && rescue->served) {
    shard->plan.layer = *rescue->served;
    // Rows of one class share a decision, and with it this spec.
    shard->plan.layer.name = plan.layer.name;
  }
  shard->layer.plan = &shard->plan;
  for (const LayerWeights& weights : whole) {
    GEARSHIFT_TRY(std::unique_ptr<CutWeights> cut,
                  cut_weights(weights, dequantised ? plan.layer : shard->plan.layer, rank));
    if (dequantised) shard->made.push_back(as_bf16(*cut, shard->plan.layer));
    shard->layer.weights.push_back(dequantised ? shard->made.back()->weights : cut->weights);
    shard->cuts.push_back(std::move(cut));
  }
  for (const PlannedRange& range : plan.decision->ranges)
    GEARSHIFT_CHECK(add_layout(shard->layer, *range.kernel->layout, threads));
  return shard;
}

}  // namespace gearshift
