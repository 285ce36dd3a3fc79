// A hand-made plan with two layers of one role, an unquantized one and a fallback; no checkpoint, no kernel runs.
#pragma once

#include "gearshift/pipeline.h"

namespace gearshift::test {

inline const Layout& sample_layout() {
  static const Layout layout{"rows16", 1, nullptr, nullptr, nullptr};
  return layout;
}

inline const Kernel& sample_kernel(int which) {
  static const Kernel kernels[] = {[] {
                                     Kernel k;
                                     k.name = "fast_decode";
                                     k.backend = "native";
                                     k.families = {Family::nvfp4_w4a4};
                                     k.layout = &sample_layout();
                                     k.contract.isa = Isa::avx2;
                                     k.contract.weight_formats = {Format::e2m1};
                                     k.contract.k = {16, 0, 16};
                                     k.contract.experts = false;
                                     k.formula = "y = x * W";
                                     return k;
                                   }(),
                                   [] {
                                     Kernel k;
                                     k.name = "slow_all";
                                     k.backend = "emulation";
                                     k.families = {Family::nvfp4_w4a4, Family::bf16};
                                     k.activation = ActivationUse::float16;
                                     k.layout = &sample_layout();
                                     return k;
                                   }()};
  return kernels[which];
}

inline LayerSpec nvfp4_layer(const std::string& name) {
  LayerSpec layer;
  layer.name = name;
  layer.parts = {name + ".a", name + ".b"};
  layer.family = Family::nvfp4_w4a4;
  layer.n = 1536;
  layer.k = 384;
  layer.scheme.quantized = true;
  layer.scheme.weight = {
      Format::e2m1, Storage::nibbles, {Grouping::Kind::group, 1, 16}, true, DType::f8_e4m3, true, true, false};
  layer.scheme.activation =
      ActivationScheme{Format::e2m1, true, Granularity::token_group, 16, true, true, true, ScaleRule::amax, 0};
  layer.weight_bytes = 331776;
  return layer;
}

inline LayerSpec float_layer(const std::string& name) {
  LayerSpec layer;
  layer.name = name;
  layer.n = 8;
  layer.k = 384;
  layer.bias = true;
  layer.weight_bytes = 6144;
  layer.modules = {{name, 8, {{TensorRole::weight, name + ".weight", DType::bf16, {8, 384}}}}};
  return layer;
}

inline BenchReport sample_bench(const Plan& plan, const Measurement& timed) {
  BenchReport report;
  report.plan = plan;
  report.threads = 2;
  report.pinned = true;
  report.ceilings = {{"dram", "GB/s", "1.07 GB of memory, 4 streams", 50.25, 49, 51, 6},
                     {"fp32", "GFLOP/s", "vfmadd231ps ymm", 200, 190, 210, 18},
                     {"bf16", "GFLOP/s", "vfmadd231ps ymm", 201, 190, 210, 18},
                     {"int8", "GOP/s", "vpdpbusd zmm", 1600, 1500, 1700, 18}};
  BenchRow row;
  row.measurement = timed;
  row.layers = 28;
  row.floor_us = 6.625;
  row.floor_by = "dram";
  row.copies = 3237;
  row.rotated_bytes = 1073952000;
  report.rows.push_back(row);
  BenchRow refused;
  refused.measurement = timed;
  refused.measurement.m = 16;
  refused.measurement.timing.reset();
  refused.measurement.comparison = {};
  refused.measurement.backend = "";
  refused.refused = "K 100 is not a multiple of 16";
  report.rows.push_back(refused);
  report.stack = {{1, 371, {{"nvfp4_w4a4", 1.0}}}};
  report.notes = {"the machine does other work"};
  return report;
}

inline Plan sample_plan() {
  auto shifting = std::make_shared<Decision>();
  shifting->ranges = {{1, 16, &sample_kernel(0), "static", "nvfp4"}, {17, 0, &sample_kernel(1), "measured", "bf16"}};
  shifting->candidates = {
      {&sample_kernel(0), VerdictKind::selected, Stage::rank, "", "", "", "first in the list for batch 1 to 16"},
      {&sample_kernel(1), VerdictKind::selected, Stage::rank, "", "", "", "measured faster from batch 17 on"}};
  shifting->weight_arithmetic = "e2m1";
  shifting->activation_arithmetic = "bf16";
  shifting->accumulator = "fp32";
  shifting->differs = "activation_upgraded";
  shifting->runnable = true;
  shifting->workspace_bytes = {{1, 0}, {256, 4096}};
  auto plain = std::make_shared<Decision>();
  plain->ranges = {{1, 0, &sample_kernel(1), "static", "bf16"}};
  plain->candidates = {{&sample_kernel(0), VerdictKind::rejected, Stage::layer, "weight_formats", "float", "e2m1",
                        "reads e2m1 weights only"},
                       {&sample_kernel(1), VerdictKind::selected, Stage::rank, "", "", "", "last of the list"}};
  plain->fallback = PlanFallback{"native", "it has no kernel for bf16"};
  plain->weight_arithmetic = "bf16";
  plain->activation_arithmetic = "bf16";
  plain->accumulator = "fp32";

  Plan plan;
  plan.model_path = "/models/tiny";
  plan.architecture = "TinyModel";
  plan.quant_method = "compressed-tensors";
  plan.linear_layers = 5;
  plan.device.name = "Test CPU";
  plan.device.arch = "x86_64+avx2";
  plan.device.present = true;
  plan.device.cores = 2;
  plan.policy.linear.global = "native";
  plan.policy.linear.families = {{Family::bf16, "emulation"}};
  plan.policy.layers = {{"*.head", "reference"}};
  plan.policy.batch = {1, 256};
  plan.unused = {"x*"};
  plan.layers = {{nvfp4_layer("model.layers.0.up"), shifting},
                 {nvfp4_layer("model.layers.1.up"), shifting},
                 {float_layer("model.head"), plain}};
  plan.warnings = {{"backend_not_covered", "bf16", "native", 1, "native has no kernel for bf16"},
                   {"emulation", "", "", 1, "only the slow path is left"}};
  plan.skipped = {"model.embed_tokens"};
  plan.hash = "0123456789abcdef";
  return plan;
}

inline Measurement sample_row(const LayerPlan& row, int64_t m, bool ok) {
  Measurement out;
  out.layer = row.layer.name;
  out.family = name(row.layer.family);
  out.scheme = scheme_name(row.layer.scheme);
  out.arithmetic = "e2m1 x nvfp4, fp32";
  out.n = row.layer.n;
  out.k = row.layer.k;
  out.m = m;
  const PlannedRange& range =
      m <= 16 || row.decision->ranges.size() == 1 ? row.decision->ranges.front() : row.decision->ranges.back();
  out.kernel = range.kernel->name;
  out.backend = range.kernel->backend;
  out.timing = Timing{12.34567, 11, 14, 20};
  out.gbytes_per_s = 26.5;
  out.tflops = 0.01;
  out.weight_bytes = row.layer.weight_bytes;
  out.comparison.ok = ok;
  out.comparison.relative_error = 0.0003;
  out.comparison.worst_row = 0.0004;
  out.comparison.worst_column = 0.0005;
  out.comparison.tolerance = 0.01;
  if (!ok) out.comparison.failure = "row 3, column 7: 0.12 instead of 0.10";
  return out;
}

}  // namespace gearshift::test
