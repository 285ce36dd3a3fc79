#include "kernel/cuda/prefill.h"

#include "device/cuda.h"
#include "kernel/cuda/bound_run.h"
#include "kernel/cuda/failure.h"
#include "kernel/cuda/operand.h"
#include "kernel/cuda/prefill_launch.h"
#include "kernel/layout/code_rows.h"
#include "kernel/layout/int4_rows16_mma.h"
#include "kernel/layout/mxfp4_rows16_mma.h"
#include "kernel/layout/nvfp4_rows16_mma.h"
#include "kernel/layout/rows16.h"
#include "kernel/output.h"
#include "kernel/reference/activation.h"

namespace gearshift {

namespace {

bool is_rows(const Layout& layout) { return &layout == &code_rows; }

// Quantized activations are exact in bf16, whatever type they had.
cuda::OperandNeeds prefill_needs(const LayerSpec& layer, ActivationUse use, DType dtype) {
  return {use, quantizes(layer.scheme, use) ? DType::bf16 : dtype, units_along(layer.k) * kUnitColumns};
}

struct Scratch {
  cuda::PrefillScratch shared;
  uint8_t* operands = nullptr;  // [versions] of operand_bytes
  int64_t operand_stride = 0;
};
int64_t carve(const LayerSpec& layer, ActivationUse use, int64_t m, uint8_t* base, Scratch* out) {
  Carver carver(base);
  Scratch s;
  s.shared = cuda::carve_prefill(carver);
  s.operand_stride = cuda::operand_bytes(prefill_needs(layer, use, DType::bf16), m);
  s.operands = carver.take<uint8_t>(activation_versions(layer, use) * s.operand_stride);
  if (out != nullptr) *out = s;
  return carver.used();
}

// What a launch depends on besides shapes.
struct PrefillFormat {
  const Layout* layout = nullptr;
  Format code = Format::e4m3;
  int64_t unit_bytes = 0;  // of units
  int64_t groups = 0;      // of int4
  bool zeros = false;
  cuda::StreamScales scales = cuda::StreamScales::none;  // of rows
  bool half = false;                                     // x is multiplied as fp16

  // Formats for which only the variants that suit most shapes are built.
  bool rare() const {
    if (half) return true;
    if (layout == &int4_rows16_mma) return groups != 1;
    if (!is_rows(*layout)) return false;
    return scales == cuda::StreamScales::powers || (scales == cuda::StreamScales::one && code != Format::e4m3);
  }
};

// `element`: of x as it is multiplied.
PrefillFormat format_of(const LayerSpec& layer, const Layout& layout, DType element) {
  PrefillFormat format;
  format.layout = &layout;
  format.half = element == DType::f16;
  format.code = layer.scheme.weight.format;
  format.zeros = !layer.scheme.weight.symmetric;
  if (is_rows(layout)) {
    const CodeRows rows = code_rows_of(layer);
    if (rows.scales >= 0) format.scales = rows.exponents ? cuda::StreamScales::powers : cuda::StreamScales::one;
  } else if (&layout == &nvfp4_rows16_mma) {
    format.unit_bytes = kNvfp4UnitBytes;
  } else if (&layout == &mxfp4_rows16_mma) {
    format.unit_bytes = kMxfp4UnitBytes;
  } else {
    format.unit_bytes = int4_unit_bytes(layer);
    format.groups = int4_groups_in_unit(layer);
  }
  return format;
}

cuda::PrefillTable table_of(const PrefillFormat& format) {
  cuda::PrefillTable table;
  if (is_rows(*format.layout)) table.tactics = cuda::prefill_code_tactics;
  table.rare = format.rare();
  return table;
}

#ifdef GEARSHIFT_CUDA_TARGETS

bool launch_format(const cuda::PrefillCall& call, const cuda::PrefillLaunch& launch, const PrefillFormat& f) {
  if (f.layout == &nvfp4_rows16_mma) return cuda::launch_prefill_nvfp4(call, launch, f.half);
  if (f.layout == &mxfp4_rows16_mma) return cuda::launch_prefill_mxfp4(call, launch);
  if (f.layout == &int4_rows16_mma) {
    if (f.groups == 1) return cuda::launch_prefill_int4_128(call, launch, f.zeros, f.half);
    if (f.groups == 2) return cuda::launch_prefill_int4_64(call, launch, f.zeros);
    return cuda::launch_prefill_int4_32(call, launch, f.zeros);
  }
  if (f.code == Format::e4m3) return cuda::launch_prefill_codes_e4m3(call, launch, f.scales, f.half);
  if (f.code == Format::e2m3 || f.code == Format::e3m2)
    return cuda::launch_prefill_codes_fp6(call, launch, f.code == Format::e3m2);
  return cuda::launch_prefill_codes_int8(call, launch, f.scales, f.half);
}

// Consecutive parts that read the same version of x.
struct PartRun {
  size_t first_part = 0;
  int64_t first_row = 0, rows = 0;    // of the layer
  int64_t first_slab = 0, slabs = 0;  // of units: each part begins a slab
};

cuda::MatrixBoxes point_at_units(const RunArgs& args, const PrefillFormat& format, const PartRun& run, int box_rows,
                                 cuda::PrefillCall& call) {
  const LayerSpec& layer = *args.weights->spec;
  const int64_t row_bytes = units_along(layer.k) * format.unit_bytes;
  const auto* record = reinterpret_cast<const RowRecord*>(args.packed + rows16_records_at(layer, format.unit_bytes)) +
                       run.first_slab * kUnitRows;
  call.rows = {&record->factor, &record->bias, &record->column, sizeof *record / 4,
               static_cast<int>(run.slabs * kUnitRows)};
  call.half_scales = args.weights->parts[run.first_part].scale_dtype == DType::f16;
  // The largest element that a map has, so that a unit is a box.
  return {args.packed + run.first_slab * row_bytes,
          8,
          row_bytes / 8,
          run.slabs,
          row_bytes,
          static_cast<int>(format.unit_bytes / 8),
          box_rows / 16,
          false};
}

cuda::MatrixBoxes point_at_rows(const RunArgs& args, const PartRun& run, int box_rows, cuda::PrefillCall& call) {
  const CodeRows packed = code_rows_of(*args.weights->spec);
  const auto words = [&](int64_t section) {
    return reinterpret_cast<const float*>(args.packed + section) + run.first_row;
  };
  call.rows.factors = words(packed.factors);
  if (packed.bias >= 0) call.rows.bias = words(packed.bias);
  call.rows.columns = reinterpret_cast<const int32_t*>(args.packed + packed.columns) + run.first_row;
  call.rows.count = static_cast<int>(run.rows);
  if (packed.scales >= 0) {
    call.row_scale_step = packed.scale_row_bytes / 4;
    call.row_scales =
        reinterpret_cast<const float*>(args.packed + packed.scales + run.first_row * packed.scale_row_bytes);
  }
  return {args.packed + run.first_row * packed.row_bytes,
          1,
          packed.row_bytes,
          run.rows,
          packed.row_bytes,
          128,
          box_rows,
          true};
}

bool launch_parts(const RunArgs& args, const PrefillFormat& format, const Scratch& scratch, const cuda::Operand& x,
                  const PartRun& run) {
  const LayerSpec& layer = *args.weights->spec;
  const bool rows = is_rows(*format.layout);
  const cuda::PrefillTable table = table_of(format);
  const cuda::PrefillSize size =
      prefill_size(layer, *format.layout, rows ? run.rows : run.slabs * kUnitRows, args.x.rows);
  cuda::PrefillCall call;
  cuda::PrefillLaunch launch;
  if (!cuda::begin_prefill(args, table, size, scratch.shared, call, launch)) return false;
  const cuda::PrefillTactic& tactic = table.tactics[static_cast<size_t>(launch.tactic)];
  const int box_rows = cuda::prefill_rows(tactic);
  const cuda::MatrixBoxes weights =
      rows ? point_at_rows(args, run, box_rows, call) : point_at_units(args, format, run, box_rows, call);
  const cuda::MatrixBoxes tokens{x.data, 2, layer.k, args.x.rows, x.stride * 2, 64, tactic.tokens / tactic.multicast,
                                 true};
  call.token_factor = x.token_factor;
  call.factor = static_cast<float>(x.factor);
  call.half_out = args.y.dtype == DType::f16;
  return cuda::make_tensor_map(tokens, launch.x) && cuda::make_tensor_map(weights, launch.weights) &&
         launch_format(call, launch, format);
}

void run_prefill(const RunArgs& args, ActivationUse use, const Layout& layout) {
  const LayerWeights& weights = *args.weights;
  const LayerSpec& layer = *weights.spec;
  const int64_t m = args.x.rows;
  if (m == 0) return;
  Scratch scratch;
  carve(layer, use, m, args.workspace.data(), &scratch);
  const int64_t versions = activation_versions(layer, use);
  const cuda::OperandNeeds needs = prefill_needs(layer, use, args.x.dtype);
  const PrefillFormat format = format_of(layer, layout, needs.element);
  const int64_t pre_scale_at = is_rows(layout) ? code_rows_of(layer).pre_scale : -1;
  PartRun run;
  for (size_t part = 0; part < weights.parts.size();) {
    const size_t version = activation_version(weights, part, versions);
    run.first_part = part;
    run.rows = run.slabs = 0;
    for (; part < weights.parts.size() && activation_version(weights, part, versions) == version; ++part) {
      run.rows += weights.parts[part].n;
      run.slabs += slabs_of_part(weights.parts[part].n);
    }
    const float* pre_scale = nullptr;
    if (pre_scale_at >= 0)
      pre_scale =
          reinterpret_cast<const float*>(args.packed + pre_scale_at) + static_cast<int64_t>(run.first_part) * layer.k;
    cuda::Operand x;
    if (!cuda::make_operand(args, needs, run.first_part, 0, m, pre_scale,
                            scratch.operands + static_cast<int64_t>(version) * scratch.operand_stride, x) ||
        !launch_parts(args, format, scratch, x, run))
      return cuda::failed(args);
    run.first_row += run.rows;
    run.first_slab += run.slabs;
  }
}

cuda::Run run_prefill_of(ActivationUse use, const Layout& layout) {
  return cuda::bound_run<run_prefill, &nvfp4_rows16_mma, &mxfp4_rows16_mma, &int4_rows16_mma, &code_rows>(use, layout);
}

#else

cuda::Run run_prefill_of(ActivationUse, const Layout&) { return nullptr; }

#endif

}  // namespace

cuda::PrefillTable prefill_table(const LayerSpec& layer, ActivationUse use, const Layout& layout, DType dtype) {
  return table_of(format_of(layer, layout, prefill_needs(layer, use, dtype).element));
}

cuda::PrefillSize prefill_size(const LayerSpec& layer, const Layout& layout, int64_t rows, int64_t m) {
  return {rows, units_along(layer.k), m, cuda::limits().multiprocessors,
          is_rows(layout) ? rows * code_rows_of(layer).row_bytes : 0};
}

Kernel make_cuda_prefill(std::string_view name, ActivationUse use, const Layout& layout) {
  Kernel kernel;
  kernel.name = name;
  kernel.backend = "native";
  kernel.platform = Platform::cuda;
  kernel.activation = use;
  kernel.layout = &layout;
  Contract& contract = kernel.contract;
  contract.archs = {"sm_90"};
  contract.dtypes = {DType::bf16, DType::f16};
  contract.n.max = int64_t{1} << 26;
  contract.k.max = int64_t{1} << 24;
  contract.act_order = false;
  if (!is_rows(layout)) contract.pre_scale = contract.partial_groups = false;
  contract.capture_safe = true;
  contract.verified = {"sm_90"};
  contract.activation_groups = {16, 32, 64, 128};  // groups of neighbouring lanes (stage/prepare_x.cu)
  kernel.contract.targets = cuda::code_targets();
  kernel.bound_u = 0x1p-23;  // tensor cores add with a little less than fp32
  kernel.workspace_bytes =
      use == ActivationUse::as_checkpoint
          ? [](const LayerSpec& layer, int64_t m,
               int) { return m == 0 ? 0 : carve(layer, ActivationUse::as_checkpoint, m, nullptr, nullptr); }
          : [](const LayerSpec& layer, int64_t m, int) {
              return m == 0 ? 0 : carve(layer, ActivationUse::float16, m, nullptr, nullptr);
            };
  kernel.run = run_prefill_of(use, layout);
  PrefillFormat most;
  most.layout = &layout;
  most.groups = 1;
  kernel.tactics = cuda::prefill_tactic_names(table_of(most));
  return kernel;
}

ConditionalContract fp16_without_group_scales() {
  ConditionalContract fp16;
  fp16.when.dtypes = {DType::f16};
  fp16.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row, Grouping::Kind::whole_row};
  return fp16;
}

ConditionalContract fp16_if_quantized(std::vector<Format> formats) {
  ConditionalContract fp16;
  fp16.when.dtypes = {DType::f16};
  fp16.contract.activation_formats = std::move(formats);
  return fp16;
}

}  // namespace gearshift
