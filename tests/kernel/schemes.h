// One example of every way that a checkpoint quantizes a linear layer.
#pragma once

#include <gtest/gtest.h>

#include "made_layer.h"

namespace gearshift::testing {

inline Scheme weight_only(WeightScheme weight) { return {true, weight, std::nullopt, false}; }
inline Scheme with(WeightScheme weight, ActivationScheme activation) { return {true, weight, activation, false}; }
inline Scheme pre_scaled(Scheme scheme) {
  scheme.pre_scale = true;
  return scheme;
}

inline std::vector<Named> all_schemes() {
  using enum Format;
  constexpr auto tensor = Grouping{Grouping::Kind::tensor, 1, 0};
  constexpr auto row = Grouping{Grouping::Kind::row, 1, 0};
  constexpr auto whole_row = Grouping{Grouping::Kind::whole_row, 1, 0};
  const auto group = [](int64_t cols) { return Grouping{Grouping::Kind::group, 1, cols}; };
  const auto block = [](int64_t rows, int64_t cols) { return Grouping{Grouping::Kind::block, rows, cols}; };
  const auto weight = [](Format format, Storage storage, Grouping grouping, DType scale, bool symmetric = true) {
    WeightScheme w;
    w.format = format;
    w.storage = storage;
    w.grouping = grouping;
    w.scale = scale;
    w.symmetric = symmetric;
    return w;
  };
  const auto fp4 = [&](bool divides) {
    WeightScheme w = weight(e2m1, Storage::nibbles, group(16), DType::f8_e4m3);
    w.global_scale = true;
    w.global_divides = divides;
    return w;
  };
  const auto act_order = [](WeightScheme w) {
    w.act_order = true;
    return w;
  };
  ActivationScheme token;
  ActivationScheme limited = token;
  limited.amax_limit = 1.5f;
  ActivationScheme statically = token;
  statically.dynamic = false;
  statically.granularity = Granularity::tensor;
  statically.stored_scale = true;
  ActivationScheme whole = token;
  whole.granularity = Granularity::tensor;
  ActivationScheme group128 = token;
  group128.granularity = Granularity::token_group;
  group128.group = 128;
  ActivationScheme ue8m0 = group128;
  ue8m0.rule = ScaleRule::amax_pow2;
  const auto mx = [](Format format, ScaleRule rule) {
    ActivationScheme a;
    a.format = format;
    a.granularity = Granularity::token_group;
    a.group = 32;
    a.rule = rule;
    return a;
  };
  ActivationScheme nvfp4;
  nvfp4.format = e2m1;
  nvfp4.granularity = Granularity::token_group;
  nvfp4.group = 16;
  nvfp4.stored_scale = true;
  ActivationScheme nvfp4_ct = nvfp4;
  nvfp4_ct.stored_multiplies = true;
  ActivationScheme int8_token = token;
  int8_token.format = int8;
  ActivationScheme int8_asymmetric = int8_token;
  int8_asymmetric.symmetric = false;
  ActivationScheme int8_static = statically;
  int8_static.format = int8;
  ActivationScheme int8_static_asymmetric = int8_static;
  int8_static_asymmetric.symmetric = false;

  Scheme transposed;
  transposed.weight.storage = Storage::dense_transposed;
  const auto fp8 = [&](Grouping grouping, DType scale = DType::f32) {
    return weight(e4m3, Storage::dense, grouping, scale);
  };
  const auto packed = [&](Format f, Storage s, int64_t g, DType scale, bool symmetric = true) {
    return weight(f, s, group(g), scale, symmetric);
  };

  return {
      {"bf16", Family::bf16, {}, DType::bf16},
      {"fp16", Family::bf16, {}, DType::f16},
      {"fp32", Family::bf16, {}, DType::f32},
      {"bf16 transposed", Family::bf16, transposed, DType::bf16},

      {"fp8 tensor", Family::w8a16_fp8, weight_only(fp8(tensor))},
      {"fp8 channel bf16", Family::w8a16_fp8, weight_only(fp8(row, DType::bf16))},
      {"fp8 static", Family::fp8_w8a8, with(fp8(tensor), statically)},
      {"fp8 dynamic tensor", Family::fp8_w8a8, with(fp8(tensor), whole)},
      {"fp8 channel token", Family::fp8_w8a8, with(fp8(row, DType::bf16), token)},
      {"fp8 channel token limited", Family::fp8_w8a8, with(fp8(row), limited)},
      {"fp8 block", Family::fp8_block_w8a8, with(fp8(block(128, 128)), group128)},
      {"fp8 block ue8m0", Family::fp8_block_w8a8, with(fp8(block(128, 128), DType::f8_e8m0), ue8m0)},
      {"fp8 block 16x32", Family::fp8_block_w8a8, with(fp8(block(16, 32)), group128)},

      {"mxfp8", Family::mxfp8, with(fp8(group(32), DType::f8_e8m0), mx(e4m3, ScaleRule::e8m0_even))},
      {"mxfp8 e5m2", Family::mxfp8,
       with(weight(e5m2, Storage::dense, group(32), DType::f8_e8m0), mx(e5m2, ScaleRule::e8m0_floor))},
      {"mxfp8 weight only", Family::mxfp8, weight_only(fp8(group(32), DType::f8_e8m0))},
      {"mxfp6 e2m3", Family::mxfp6,
       with(packed(e2m3, Storage::fp6_bytes, 32, DType::f8_e8m0), mx(e2m3, ScaleRule::e8m0_ceil)), DType::bf16, 1, 4},
      {"mxfp6 e3m2", Family::mxfp6,
       with(packed(e3m2, Storage::fp6_bytes, 32, DType::f8_e8m0), mx(e3m2, ScaleRule::e8m0_even)), DType::bf16, 1, 4},
      {"mxfp4", Family::mxfp4, with(packed(e2m1, Storage::nibbles, 32, DType::f8_e8m0), mx(e2m1, ScaleRule::e8m0_even)),
       DType::bf16, 1, 2},
      {"mxfp4 weight only", Family::mxfp4, weight_only(packed(e2m1, Storage::nibbles, 32, DType::f8_e8m0)), DType::bf16,
       1, 2},
      {"mxfp4 floor", Family::mxfp4,
       with(packed(e2m1, Storage::nibbles, 32, DType::f8_e8m0), mx(e2m1, ScaleRule::e8m0_floor)), DType::bf16, 1, 2},
      {"mxfp4 fp8 token", Family::mxfp4, with(packed(e2m1, Storage::nibbles, 32, DType::f8_e8m0), token), DType::bf16,
       1, 2},
      {"mxfp4 fp8 static", Family::mxfp4, with(packed(e2m1, Storage::nibbles, 32, DType::f8_e8m0), statically),
       DType::bf16, 1, 2},
      {"nvfp4 compressed-tensors", Family::nvfp4_w4a4, with(fp4(true), nvfp4_ct), DType::bf16, 1, 16},
      {"nvfp4 modelopt", Family::nvfp4_w4a4, with(fp4(false), nvfp4), DType::bf16, 1, 16},
      {"nvfp4 awq", Family::nvfp4_w4a4, pre_scaled(with(fp4(false), nvfp4)), DType::bf16, 1, 16},
      {"nvfp4 weight only", Family::nvfp4_w4a16, weight_only(fp4(true)), DType::bf16, 1, 16},

      {"int8 channel token", Family::int8_w8a8, with(weight(int8, Storage::dense, row, DType::bf16), int8_token)},
      {"int8 asymmetric token", Family::int8_w8a8,
       with(weight(int8, Storage::dense, row, DType::f32, false), int8_asymmetric)},
      {"int8 static", Family::int8_w8a8, with(weight(int8, Storage::dense, tensor, DType::f32), int8_static)},
      {"int8 static asymmetric", Family::int8_w8a8,
       with(weight(int8, Storage::dense, row, DType::f32), int8_static_asymmetric)},
      {"smoothquant", Family::int8_w8a8, pre_scaled(with(weight(int8, Storage::dense, row, DType::f32), int8_static))},

      {"int4 packed", Family::mixed_precision, weight_only(packed(int4, Storage::dense_bits, 128, DType::bf16))},
      {"int4 packed asymmetric", Family::mixed_precision,
       weight_only(packed(int4, Storage::dense_bits, 32, DType::f32, false))},
      {"int4 packed act-order", Family::mixed_precision,
       weight_only(act_order(packed(int4, Storage::dense_bits, 32, DType::bf16)))},
      {"int8 packed channel", Family::mixed_precision,
       weight_only(weight(int8, Storage::dense_bits, row, DType::bf16))},
      {"int2 packed", Family::mixed_precision, weight_only(packed(int2, Storage::dense_bits, 64, DType::bf16, false))},
      {"int3 packed", Family::mixed_precision, weight_only(packed(int3, Storage::dense_bits, 64, DType::f16, false))},
      {"int5 packed", Family::mixed_precision, weight_only(packed(int5, Storage::dense_bits, 64, DType::f16))},
      {"int3 in words", Family::mixed_precision, weight_only(packed(int3, Storage::word_bits, 64, DType::f16, false))},
      {"int6 in words", Family::mixed_precision, weight_only(packed(int6, Storage::word_bits, 64, DType::f16))},
      {"int8 dense", Family::mixed_precision, weight_only(weight(int8, Storage::dense, row, DType::f32))},
      {"gptq v1", Family::mixed_precision, weight_only(packed(uint4, Storage::gptq_v1, 128, DType::f16, false)),
       DType::bf16, 8, 8},
      {"gptq v1 act-order", Family::mixed_precision,
       weight_only(act_order(packed(uint4, Storage::gptq_v1, 32, DType::f16))), DType::bf16, 8, 8},
      {"gptq v2 3 bits", Family::mixed_precision, weight_only(packed(uint3, Storage::gptq_v2, 32, DType::f16, false)),
       DType::bf16, 32, 32},
      {"gptq v2 2 bits", Family::mixed_precision, weight_only(packed(uint2, Storage::gptq_v2, 32, DType::f16, false)),
       DType::bf16, 16, 16},
      {"gptq v1 8 bits", Family::mixed_precision, weight_only(weight(uint8, Storage::gptq_v1, whole_row, DType::f16)),
       DType::bf16, 4, 4},
      {"awq", Family::mixed_precision, weight_only(packed(uint4, Storage::awq, 64, DType::f16, false)), DType::bf16, 8,
       1},
      {"modelopt awq", Family::mixed_precision,
       pre_scaled(weight_only(packed(int4, Storage::rows_in_byte, 128, DType::f32))), DType::bf16, 2, 1},
      {"quark int4", Family::mixed_precision, weight_only(packed(int4, Storage::quark_reorder, 32, DType::f32)),
       DType::bf16, 8, 1},
      {"quark uint4", Family::mixed_precision, weight_only(packed(uint4, Storage::quark_order, 32, DType::f32, false)),
       DType::bf16, 8, 1},

      {"int4 int8", Family::w4a8, with(packed(int4, Storage::dense_bits, 128, DType::bf16), int8_token)},
      {"int4 fp8 token", Family::w4a8, with(packed(int4, Storage::dense_bits, 128, DType::bf16), token)},
      {"int4 fp8", Family::w4a8, pre_scaled(with(packed(int4, Storage::rows_in_byte, 128, DType::f32), statically)),
       DType::bf16, 2, 1},
  };
}

inline Named scheme_named(std::string_view name) {
  for (const Named& named : all_schemes()) {
    if (named.name == name) return named;
  }
  ADD_FAILURE() << name;
  return {};
}

}  // namespace gearshift::testing
