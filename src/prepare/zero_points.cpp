#include "prepare/zero_points.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "kernel/reference/decode.h"
#include "layer/stored_bits.h"

namespace gearshift {

namespace {

bool is_gptq(Storage storage) { return storage == Storage::gptq_v1 || storage == Storage::gptq_v2; }

std::string_view reading_of(Storage storage) {
  switch (storage) {
    case Storage::gptq_v1:
      return "GPTQ v1 (checkpoint_format \"gptq\", or none)";
    case Storage::gptq_v2:
      return "GPTQ v2 (checkpoint_format \"gptq_v2\")";
    case Storage::awq:
      return "AWQ";
    default:
      return "the writer's packing";
  }
}

}  // namespace

std::optional<std::string> contradicting_zero_points(const LayerSpec& layer, int64_t n, const StoredTensor& stored,
                                                     ByteView bytes) {
  const Storage storage = layer.scheme.weight.storage;
  const bool zeros = std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
  if (zeros && !is_gptq(storage) && storage != Storage::awq) return std::nullopt;
  const size_t dot = stored.name.rfind('.');
  const std::string tensor = printable(dot == std::string::npos ? stored.name : stored.name.substr(dot + 1));
  const StoredExtents extents = stored_extents(layer.scheme, n, layer.k);
  const bool integers = stored.dtype == DType::i32 || stored.dtype == DType::i8 || stored.dtype == DType::u8;
  if (!integers || static_cast<int64_t>(bytes.size()) != zero_point_bytes(layer.scheme.weight, extents, stored.dtype))
    return fmt::format("{} holds {} {} that are not 0; the weights are symmetric, which settles it: it is not used",
                       tensor, name(stored.dtype), to_string(stored.shape));

  LayerSpec asymmetric;
  asymmetric.k = layer.k;
  asymmetric.scheme = layer.scheme;
  asymmetric.scheme.weight.symmetric = false;
  PartWeights part;
  part.n = n;
  part.zero_point = bytes;
  part.zero_point_dtype = stored.dtype;
  const LayerWeights as_stored{&asymmetric, {part}}, as_implied{&layer, {part}};
  const StoredWeights found(as_stored, 0), wanted(as_implied, 0);
  for (int64_t group = 0; group < extents.tile_cols; ++group) {
    for (int64_t row = 0; row < n; ++row) {
      const int32_t zero = found.zero_point(row, group), implied = wanted.zero_point(row, group);
      if (zero == implied) continue;
      const bool minus_one = storage == Storage::gptq_v1;
      return fmt::format(
          "{} holds {}, which {} reads as zero point {}; the weights are symmetric, which settles it: {}", tensor,
          minus_one ? zero - 1 : zero, reading_of(storage), zero, implied);
    }
  }
  return std::nullopt;
}

}  // namespace gearshift
