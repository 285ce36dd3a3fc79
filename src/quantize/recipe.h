// How one weight matrix becomes the tensors of a scheme. A recipe is data: generic code reads the source, calls it
// panel by panel from many threads, and measures what it lost.
//
// All arithmetic is fp32 on widened weights. A scale that is stored in 16 bits is rounded first and codes are made from
// the rounded scale, so that every code is the nearest one to what a reader will compute with.
#pragma once

#include <span>

#include "gearshift/base.h"

namespace gearshift::quantize_detail {

// What is known of a module before its elements are coded.
struct ModuleFacts {
  int64_t n = 0, k = 0;
  DType stored = DType::bf16;  // of the source weight; scales without a type of their own are stored in it
  float amax = 0;              // largest magnitude of the weight
  float shared_amax = 0;       // the same over all parts that serving engines fuse with it
  float input_amax = 0;        // of the activations, measured or assumed
};

struct OutTensor {
  std::string_view suffix;  // "weight_packed"
  DType dtype = DType::u8;
  Shape shape;
};

// Rows [row, row + rows) of a module, widened.
struct Panel {
  const ModuleFacts& facts;
  int64_t row = 0, rows = 0;
  const float* w = nullptr;  // [rows, k]
};

struct Recipe {
  int64_t panel_rows = 1;  // rows that must be coded together (share a scale, or a byte); a panel starts at a multiple
  std::vector<OutTensor> (*tensors)(const ModuleFacts& facts);
  // Tensors that do not depend on single elements: tensor-wide scales, shapes. `out`: data of tensors(), in order.
  void (*scalars)(const ModuleFacts& facts, std::span<uint8_t* const> out);
  // Codes and scales of one panel, and the weights a reader gets back. Panels write disjoint bytes.
  void (*encode)(const Panel& panel, std::span<uint8_t* const> out, float* decoded);
};

// For recipes without such tensors.
inline void no_scalars(const ModuleFacts&, std::span<uint8_t* const>) {}

extern const Recipe recipe_nvfp4, recipe_nvfp4_a16;
extern const Recipe recipe_fp8_tensor, recipe_fp8_channel, recipe_fp8_block;
extern const Recipe recipe_mxfp4, recipe_mxfp8;
extern const Recipe recipe_modelopt_nvfp4, recipe_modelopt_nvfp4_a16, recipe_modelopt_fp8;
extern const Recipe recipe_int8_channel, recipe_int4_group128, recipe_int4_group128_asymmetric;

}  // namespace gearshift::quantize_detail
