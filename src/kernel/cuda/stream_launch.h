// What every launch of the streaming decode kernel has in common, for one matrix or for many.
#pragma once

#include "gearshift/kernel.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/stage/stream_call.h"
#include "kernel/cuda/stream_tactics.h"

namespace gearshift::cuda {

// Whether a layout's weights are rows of code_rows; else they are units of 16 rows.
bool streams_rows(const Layout& layout);

// Quantized activations are exact in bf16, whatever type they had; fp32 scales of groups stay beside their codes.
OperandNeeds stream_needs(const LayerSpec& layer, ActivationUse use, DType dtype);

enum class StreamCode : uint8_t { nvfp4, mxfp4, int4, e4m3, int8, e2m3, e3m2 };

// What a launch depends on besides shapes.
struct StreamFormat {
  StreamCode code = StreamCode::nvfp4;
  int64_t unit_bytes = 0;
  int groups = 0;  // of int4
  bool zeros = false;
  StreamScales scales = StreamScales::none;  // of rows
  bool half = false;                         // x is multiplied as fp16

  // Formats for which only the variants that suit most shapes are built.
  bool rare() const {
    return half || code >= StreamCode::e2m3 || (code == StreamCode::int4 && groups != 1) ||
           (code == StreamCode::int8 && scales != StreamScales::none);
  }
};
StreamFormat stream_format(const LayerSpec& layer, const Layout& layout);

// Consecutive parts that read the same version of x.
struct PartRun {
  size_t first_part = 0;
  int64_t first_row = 0, rows = 0;    // of the layer
  int64_t first_slab = 0, slabs = 0;  // of units: each part begins a slab
  bool whole_slabs = true;            // of rows: every part is whole slabs

  void add(const PartWeights& part);
};

// Everything of `call` that is about weights.
void point_at_weights(const LayerWeights& weights, const uint8_t* packed, const Layout& layout,
                      const StreamFormat& format, const PartRun& run, StreamCall& call);
// And about x, of which `k` columns were asked for.
void point_at_operand(const Operand& x, int64_t k, StreamCall& call);

// The device in use.
StreamDevice stream_device();
bool launch_stream(const StreamCall& call, const StreamFormat& format, int tactic, void* stream);

}  // namespace gearshift::cuda
