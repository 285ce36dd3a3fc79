#include "plan/sample_layers.h"

#include "layer/make_scheme.h"

namespace gearshift {
namespace {

using Kind = Grouping::Kind;

Scheme with_activations(Scheme scheme, Format format, Granularity granularity, int64_t group, bool dynamic = true) {
  scheme.activation = quantized_activations(format, granularity, group);
  scheme.activation->dynamic = dynamic;
  return scheme;
}

Grouping groups_of(int64_t columns) { return {Kind::group, 1, columns}; }

const Grouping kTensor{Kind::tensor, 1, 0}, kRow{Kind::row, 1, 0}, kWholeRow{Kind::whole_row, 1, 0};

Scheme fp8(Grouping grouping) { return quantized_weights(Format::e4m3, Storage::dense, grouping, DType::f32); }

Scheme micro(Format format, Storage storage) {
  return quantized_weights(format, storage, groups_of(32), DType::f8_e8m0);
}

Scheme nvfp4() {
  Scheme scheme = quantized_weights(Format::e2m1, Storage::nibbles, groups_of(16), DType::f8_e4m3);
  scheme.weight.global_scale = true;
  return scheme;
}

std::vector<Scheme> integers() {
  std::vector<Scheme> schemes;
  for (const int64_t group : {32, 64, 128}) {
    schemes.push_back(quantized_weights(Format::int4, Storage::dense_bits, groups_of(group), DType::bf16));
    schemes.push_back(quantized_weights(Format::uint4, Storage::gptq_v1, groups_of(group), DType::f16));
    Scheme awq = quantized_weights(Format::uint4, Storage::awq, groups_of(group), DType::f16);
    awq.weight.symmetric = false;
    schemes.push_back(awq);
  }
  schemes.push_back(quantized_weights(Format::int4, Storage::dense_bits, kWholeRow, DType::bf16));
  schemes.push_back(quantized_weights(Format::int8, Storage::dense_bits, groups_of(128), DType::bf16));
  schemes.push_back(quantized_weights(Format::uint8, Storage::gptq_v1, groups_of(128), DType::f16));
  schemes.push_back(quantized_weights(Format::int3, Storage::dense_bits, groups_of(128), DType::bf16));
  return schemes;
}

std::vector<Scheme> schemes_of(Family family) {
  using G = Granularity;
  switch (family) {
    case Family::bf16:
      return {Scheme{}};
    case Family::w8a16_fp8:
      return {fp8(kTensor), fp8(kRow), fp8({Kind::block, 128, 128})};
    case Family::fp8_w8a8:
      return {with_activations(fp8(kTensor), Format::e4m3, G::tensor, 0, false),
              with_activations(fp8(kTensor), Format::e4m3, G::tensor, 0),
              with_activations(fp8(kTensor), Format::e4m3, G::token, 0),
              with_activations(fp8(kRow), Format::e4m3, G::token, 0),
              with_activations(fp8(kRow), Format::e4m3, G::tensor, 0, false)};
    case Family::fp8_block_w8a8:
      return {with_activations(fp8({Kind::block, 128, 128}), Format::e4m3, G::token_group, 128)};
    case Family::mxfp8:
      return {with_activations(micro(Format::e4m3, Storage::dense), Format::e4m3, G::token_group, 32),
              micro(Format::e4m3, Storage::dense)};
    case Family::mxfp6:
      return {micro(Format::e3m2, Storage::fp6_bytes),
              with_activations(micro(Format::e3m2, Storage::fp6_bytes), Format::e3m2, G::token_group, 32),
              with_activations(micro(Format::e2m3, Storage::fp6_bytes), Format::e2m3, G::token_group, 32)};
    case Family::mxfp4:
      return {micro(Format::e2m1, Storage::nibbles),
              with_activations(micro(Format::e2m1, Storage::nibbles), Format::e2m1, G::token_group, 32),
              with_activations(micro(Format::e2m1, Storage::nibbles), Format::e4m3, G::token_group, 32)};
    case Family::nvfp4_w4a4:
      return {with_activations(nvfp4(), Format::e2m1, G::token_group, 16)};
    case Family::nvfp4_w4a16:
      return {nvfp4()};
    case Family::int8_w8a8: {
      const Scheme row = quantized_weights(Format::int8, Storage::dense, kRow, DType::bf16);
      return {with_activations(row, Format::int8, G::token, 0),
              with_activations(row, Format::int8, G::tensor, 0, false)};
    }
    case Family::mixed_precision:
      return integers();
    case Family::w4a8:
      return {with_activations(quantized_weights(Format::int4, Storage::dense_bits, groups_of(128), DType::bf16),
                               Format::e4m3, G::token, 0),
              with_activations(quantized_weights(Format::int4, Storage::dense_bits, groups_of(32), DType::bf16),
                               Format::int8, G::token, 0)};
  }
  return {};
}

}  // namespace

std::vector<LayerSpec> sample_layers(Family family, LayerKind kind) {
  // Round; N off 128; K off 128 and 256; small.
  constexpr std::pair<int64_t, int64_t> kShapes[] = {{4096, 4096}, {4160, 4096}, {4096, 1824}, {16, 1024}};
  std::vector<LayerSpec> layers;
  for (const Scheme& scheme : schemes_of(family)) {
    for (const auto& [n, k] : kShapes) {
      LayerSpec layer;
      layer.name = "sample";
      layer.kind = kind;
      layer.experts = kind == LayerKind::experts ? 8 : 0;
      layer.family = family;
      layer.n = n;
      layer.k = k;
      layer.scheme = scheme;
      layers.push_back(std::move(layer));
    }
  }
  return layers;
}

}  // namespace gearshift
