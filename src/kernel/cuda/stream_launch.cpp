#include "kernel/cuda/stream_launch.h"

#include "device/cuda.h"
#include "kernel/layout/code_rows.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/mxfp4_rows16_mma.h"
#include "kernel/layout/nvfp4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/reference/activation.h"

namespace gearshift::cuda {

bool streams_rows(const Layout& layout) { return &layout == &code_rows; }

OperandNeeds stream_needs(const LayerSpec& layer, ActivationUse use, DType dtype) {
  OperandNeeds needs{use, dtype, units_along(layer.k) * kUnitColumns};
  if (!quantizes(layer.scheme, use)) return needs;
  needs.element = DType::bf16;
  const ActivationScheme& x = *layer.scheme.activation;
  const bool fp32_scales = x.rule == ScaleRule::amax || x.rule == ScaleRule::amax_pow2;
  if (x.granularity == Granularity::token_group && fp32_scales && x.format != Format::e2m1) {
    needs.group_scales = GroupScales::by_row;
    needs.group = x.group;
  }
  return needs;
}

#ifdef GEARSHIFT_CUDA_TARGETS

namespace {

StreamFormat rows_format(const LayerSpec& layer, const CodeRows& rows) {
  StreamFormat format;
  format.unit_bytes = stream_row_tile_bytes;
  if (rows.scales >= 0) {
    format.scales = rows.exponents ? StreamScales::powers : StreamScales::one;
    format.unit_bytes += stream_row_scale_bytes;
  }
  switch (layer.scheme.weight.format) {
    case Format::e4m3:
      format.code = StreamCode::e4m3;
      break;
    case Format::e2m3:
      format.code = StreamCode::e2m3;
      break;
    case Format::e3m2:
      format.code = StreamCode::e3m2;
      break;
    default:
      format.code = StreamCode::int8;
  }
  return format;
}

void point_at_units(const LayerWeights& weights, const uint8_t* packed, const StreamFormat& format, const PartRun& run,
                    StreamCall& call) {
  call.units = packed + run.first_slab * call.units_along_k * format.unit_bytes;
  call.records = reinterpret_cast<const uint32_t*>(packed + rows16_records_at(*weights.spec, format.unit_bytes)) +
                 run.first_slab * kUnitRows * 4;
  call.rows = static_cast<int>(run.slabs * kUnitRows);
  call.half_scales = weights.parts[run.first_part].scale_dtype == DType::f16;
}
void point_at_rows(const LayerSpec& layer, const uint8_t* packed, const PartRun& run, StreamCall& call) {
  const CodeRows rows = code_rows_of(layer);
  const auto floats = [&](int64_t section) { return reinterpret_cast<const float*>(packed + section) + run.first_row; };
  call.units = packed + run.first_row * rows.row_bytes;
  call.row_bytes = rows.row_bytes;
  call.rows = static_cast<int>(run.rows);
  call.factors = floats(rows.factors);
  call.columns = reinterpret_cast<const int32_t*>(packed + rows.columns) + run.first_row;
  if (rows.bias >= 0) call.bias = floats(rows.bias);
  if (rows.scales < 0) return;
  call.scales = packed + rows.scales + run.first_row * rows.scale_row_bytes;
  call.scale_row_bytes = rows.scale_row_bytes;
  const Grouping& grouping = layer.scheme.weight.grouping;
  const bool shared = grouping.kind == Grouping::Kind::block && grouping.rows % kUnitRows == 0 && run.whole_slabs;
  call.scale_row_step = shared ? 0 : 1;
}

}  // namespace

StreamFormat stream_format(const LayerSpec& layer, const Layout& layout) {
  if (streams_rows(layout)) return rows_format(layer, code_rows_of(layer));
  StreamFormat format;
  if (&layout == &nvfp4_rows16_mma) {
    format.unit_bytes = kNvfp4UnitBytes;
  } else if (&layout == &mxfp4_rows16_mma) {
    format.code = StreamCode::mxfp4;
    format.unit_bytes = kMxfp4UnitBytes;
  } else {
    format.code = StreamCode::int4;
    format.unit_bytes = int4_unit_bytes(layer);
    format.groups = static_cast<int>(int4_groups_in_unit(layer));
    format.zeros = !layer.scheme.weight.symmetric;
  }
  return format;
}

void PartRun::add(const PartWeights& part) {
  rows += part.n;
  slabs += slabs_of_part(part.n);
  whole_slabs = whole_slabs && part.n % kUnitRows == 0;
}

void point_at_weights(const LayerWeights& weights, const uint8_t* packed, const Layout& layout,
                      const StreamFormat& format, const PartRun& run, StreamCall& call) {
  call.units_along_k = static_cast<int>(units_along(weights.spec->k));
  if (streams_rows(layout))
    point_at_rows(*weights.spec, packed, run, call);
  else
    point_at_units(weights, packed, format, run, call);
}

void point_at_operand(const Operand& x, int64_t k, StreamCall& call) {
  call.x = static_cast<const uint16_t*>(x.data);
  call.x_stride = x.stride;
  call.x_scales = x.group_scales;
  call.x_scale_stride = x.group_scale_row;
  call.token_factor = x.token_factor;
  call.k = static_cast<int>(x.padded ? x.stride : k);
  call.factor = static_cast<float>(x.factor);
}

StreamDevice stream_device() {
  const Limits& device = limits();
  return {device.multiprocessors, device.shared_bytes_per_block, device.shared_bytes_per_multiprocessor,
          device.major >= 9 && device.major < 12};
}

bool launch_stream(const StreamCall& call, const StreamFormat& f, int tactic, void* stream) {
  const bool dependent = limits().major >= 9;
  switch (f.code) {
    case StreamCode::nvfp4:
      return launch_stream_nvfp4(call, tactic, f.half, stream, dependent);
    case StreamCode::mxfp4:
      return launch_stream_mxfp4(call, tactic, f.half, stream, dependent);
    case StreamCode::int4:
      if (f.groups == 1) return launch_stream_int4_128(call, tactic, f.zeros, f.half, stream, dependent);
      if (f.groups == 2) return launch_stream_int4_64(call, tactic, f.zeros, stream, dependent);
      return launch_stream_int4_32(call, tactic, f.zeros, stream, dependent);
    case StreamCode::e4m3:
      return launch_stream_e4m3(call, tactic, f.scales, f.half, stream, dependent);
    case StreamCode::e2m3:
    case StreamCode::e3m2:
      return launch_stream_fp6(call, tactic, f.code == StreamCode::e3m2, f.half, stream, dependent);
    case StreamCode::int8:
      return launch_stream_int8(call, tactic, f.scales, f.half, stream, dependent);
  }
  return false;
}

#endif

}  // namespace gearshift::cuda
