#include "report/documents.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "report/sample.h"

namespace gearshift {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

using Keys = std::vector<std::string>;

TEST(PlanJson, KeysOfTheContractInOrder) {
  const Json plan = Json::parse(plan_json(test::sample_plan()));
  EXPECT_EQ(keys(plan), (Keys{"schema", "hash", "model", "device", "policy", "layers", "warnings", "summary", "memory"}));
  EXPECT_EQ(plan["schema"], "gearshift.plan/1");
  EXPECT_EQ(plan["hash"], "0123456789abcdef");
  EXPECT_EQ(
      plan["model"],
      Json::parse(
          R"({"path": "/models/tiny", "architecture": "TinyModel", "quant_method": "compressed-tensors", "linear_layers": 5})"));
  EXPECT_EQ(plan["device"]["platform"], "cpu");
  EXPECT_EQ(plan["device"]["present"], true);
  EXPECT_EQ(plan["policy"]["linear_backend"], "native");
  EXPECT_EQ(plan["policy"]["overrides"], Json::parse(R"({"bf16": "emulation"})"));
  EXPECT_EQ(plan["policy"]["batch"], Json::parse("[1, 256]"));
  EXPECT_EQ(plan["policy"]["unused"], Json::parse(R"(["x*"])"));
  ASSERT_EQ(plan["layers"].size(), 3U);
  EXPECT_EQ(keys(plan["layers"][0]),
            (Keys{"name", "parts", "kind", "experts", "family", "n", "k", "bias", "scheme", "arithmetic", "kernels",
                  "fallback", "runnable", "shard", "memory", "candidates"}));
}

TEST(PlanJson, AQuantizedLayer) {
  const Json layer = Json::parse(plan_json(test::sample_plan()))["layers"][1];
  EXPECT_EQ(layer["name"], "model.layers.1.up");
  EXPECT_EQ(layer["parts"].size(), 2U);
  EXPECT_EQ(layer["kind"], "linear");
  EXPECT_EQ(layer["scheme"], Json::parse(R"({"quantized": true,
      "weight": {"format": "e2m1", "bits": 4, "group": 16, "symmetric": true, "scale": "e4m3", "bytes": 331776},
      "activation": {"format": "e2m1", "dynamic": true, "granularity": "token_group", "group": 16}})"));
  EXPECT_EQ(
      layer["arithmetic"],
      Json::parse(
          R"({"weight": "e2m1", "activation": "bf16", "accumulator": "fp32", "differs": "activation_upgraded"})"));
  EXPECT_EQ(layer["kernels"], Json::parse(R"([
      {"m_min": 1, "m_max": 16, "kernel": "fast_decode", "backend": "native", "source": "static", "activation": "nvfp4", "layout": "rows16"},
      {"m_min": 17, "m_max": null, "kernel": "slow_all", "backend": "emulation", "source": "measured", "activation": "bf16", "layout": "rows16"}])"));
  EXPECT_TRUE(layer["fallback"].is_null());
  EXPECT_TRUE(layer["shard"].is_null());
  EXPECT_EQ(
      layer["memory"],
      Json::parse(
          R"({"weight_bytes": 331776, "scale_bytes": 0, "second_layout_bytes": 0, "prepare_peak_bytes": 0, "workspace_bytes": {"1": 0, "256": 4096}})"));
}

TEST(PlanJson, AnUnquantizedLayerAndAFallback) {
  const Json layer = Json::parse(plan_json(test::sample_plan()))["layers"][2];
  EXPECT_EQ(layer["scheme"], Json::parse(R"({"quantized": false,
      "weight": {"format": "float", "bits": 16, "group": null, "symmetric": null, "scale": null, "bytes": 6144}, "activation": null})"));
  EXPECT_TRUE(layer["arithmetic"]["differs"].is_null());
  EXPECT_EQ(layer["fallback"], Json::parse(R"({"requested": "native", "reason": "it has no kernel for bf16"})"));
  EXPECT_EQ(layer["candidates"][0],
            Json::parse(R"({"kernel": "fast_decode", "backend": "native", "verdict": "rejected", "stage": "layer",
      "field": "weight_formats", "found": "float", "wanted": "e2m1", "reason": "reads e2m1 weights only"})"));
  EXPECT_TRUE(layer["candidates"][1]["field"].is_null());
}

TEST(PlanJson, Groupings) {
  Plan plan = test::sample_plan();
  const std::pair<Grouping, const char*> cases[] = {{{Grouping::Kind::tensor, 1, 0}, "null"},
                                                    {{Grouping::Kind::row, 1, 0}, "null"},
                                                    {{Grouping::Kind::group, 1, 128}, "128"},
                                                    {{Grouping::Kind::whole_row, 1, 0}, "-1"},
                                                    {{Grouping::Kind::block, 128, 64}, "[128, 64]"}};
  for (const auto& [grouping, wanted] : cases) {
    plan.layers[0].layer.scheme.weight.grouping = grouping;
    EXPECT_EQ(Json::parse(plan_json(plan))["layers"][0]["scheme"]["weight"]["group"], Json::parse(wanted));
  }
}

TEST(PlanJson, WarningsAndSummary) {
  const Json plan = Json::parse(plan_json(test::sample_plan()));
  EXPECT_EQ(
      plan["warnings"][0],
      Json::parse(
          R"({"code": "backend_not_covered", "family": "bf16", "requested": "native", "layers": 1, "message": "native has no kernel for bf16"})"));
  EXPECT_TRUE(plan["warnings"][1]["family"].is_null());
  EXPECT_EQ(plan["summary"],
            Json::parse(R"({"by_kernel": [{"kernel": "fast_decode", "layers": 2, "weight_bytes": 663552},
      {"kernel": "slow_all", "layers": 3, "weight_bytes": 669696}], "by_family": [{"family": "nvfp4_w4a4", "layers": 2}, {"family": "bf16", "layers": 1}],
      "unquantized": 1, "skipped": ["model.embed_tokens"]})"));
}

TEST(PlanJson, EqualPlansGiveEqualBytes) { EXPECT_EQ(plan_json(test::sample_plan()), plan_json(test::sample_plan())); }

TEST(PlanJson, NamesFromHostileFilesStayValidJson) {
  Plan plan = test::sample_plan();
  plan.layers[0].layer.name = "a\"\\\n\xff\x01";
  plan.model_path = "\xc0\xaf";
  const Json parsed = Json::parse(plan_json(plan));
  EXPECT_EQ(parsed["layers"][0]["name"], "a\"\\\n\xef\xbf\xbd\x01");
}

TEST(RunJson, Rows) {
  RunReport report;
  report.plan = test::sample_plan();
  report.rows = {test::sample_row(report.plan.layers[0], 1, true), test::sample_row(report.plan.layers[2], 256, false)};
  report.rows[1].comparison.divergence = 0.02;
  report.rows[1].comparison.worst_row = std::numeric_limits<double>::infinity();
  report.rows[1].timing.reset();
  report.stack = {{1, 100.5, {{"nvfp4_w4a4", 0.75}, {"bf16", 0.25}}}};
  const Json run = Json::parse(run_json(report));
  EXPECT_EQ(run["schema"], "gearshift.run/1");
  EXPECT_EQ(run["plan_hash"], "0123456789abcdef");
  EXPECT_EQ(run["device"]["name"], "Test CPU");
  EXPECT_FALSE(run["build"]["version"].get<std::string>().empty());
  const Json& row = run["rows"][0];
  for (const char* key :
       {"layer",        "family",  "scheme",         "arithmetic", "n",      "k",         "m",
        "kernel",       "backend", "tactic",         "median_us",  "p10_us", "p90_us",    "samples",
        "gbytes_per_s", "tflops",  "relative_error", "tolerance",  "ok",     "worst_row", "worst_column"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(row["scheme"], "NVFP4");
  EXPECT_EQ(row["median_us"], 12.346);
  EXPECT_FALSE(row.contains("divergence"));
  EXPECT_TRUE(row["failure"].is_null());
  EXPECT_EQ(run["rows"][1]["divergence"], 0.02);
  EXPECT_EQ(run["rows"][1]["ok"], false);
  EXPECT_TRUE(run["rows"][1]["worst_row"].is_null());
  EXPECT_TRUE(run["rows"][1]["median_us"].is_null());
  EXPECT_EQ(run["stack"], Json::parse(R"([{"m": 1, "total_us": 100.5, "share": {"nvfp4_w4a4": 0.75, "bf16": 0.25}}])"));
}

TEST(BenchJson, CeilingsRowsAndRefusals) {
  const Plan plan = test::sample_plan();
  BenchReport report = test::sample_bench(plan, test::sample_row(plan.layers[0], 1, true));
  const Json bench = Json::parse(bench_json(report));
  EXPECT_EQ(keys(bench), (Keys{"schema", "device", "build", "plan_hash", "model", "threads", "pinned", "ceilings",
                               "rows", "stack", "notes", "warnings"}));
  EXPECT_EQ(bench["schema"], "gearshift.bench/1");
  EXPECT_EQ(bench["plan_hash"], plan.hash);
  EXPECT_EQ(bench["ceilings"][0]["name"], "dram");
  EXPECT_EQ(bench["ceilings"][0]["unit"], "GB/s");
  EXPECT_EQ(bench["ceilings"][0]["value"], 50.25);
  const Json timed = bench["rows"][0], refused = bench["rows"][1];
  EXPECT_EQ(keys(timed), (Keys{"layer",
                               "layers",
                               "family",
                               "scheme",
                               "arithmetic",
                               "n",
                               "k",
                               "m",
                               "kernel",
                               "backend",
                               "tactic",
                               "median_us",
                               "p10_us",
                               "p90_us",
                               "samples",
                               "gbytes_per_s",
                               "tflops",
                               "relative_error",
                               "tolerance",
                               "ok",
                               "worst_row",
                               "worst_column",
                               "infinite",
                               "failure",
                               "weight_bytes",
                               "floor_us",
                               "floor_by",
                               "of_floor",
                               "copies",
                               "rotated_bytes",
                               "refused"}));
  EXPECT_EQ(timed["floor_us"], 6.625);
  EXPECT_NEAR(timed["of_floor"].get<double>(), 6.625 / timed["median_us"].get<double>(), 1e-4);
  EXPECT_TRUE(timed["refused"].is_null());
  EXPECT_EQ(refused["refused"], "K 100 is not a multiple of 16");
  for (const char* number : {"median_us", "p10_us", "p90_us", "gbytes_per_s", "tflops", "relative_error", "tolerance",
                             "ok", "worst_row", "worst_column", "floor_us", "of_floor"}) {
    EXPECT_TRUE(refused[number].is_null()) << number;
  }
  EXPECT_EQ(refused["samples"], 0);

  report.plan.model_path = "";
  const Json shapes = Json::parse(bench_json(report));
  EXPECT_TRUE(shapes["model"].is_null());
  EXPECT_FALSE(shapes.contains("stack"));
  EXPECT_EQ(shapes["rows"][0]["shape"], "1536,384");
  EXPECT_FALSE(shapes["rows"][0].contains("layer"));
}

TEST(VerifyJson, Quarantined) {
  VerifyReport report;
  report.plan = test::sample_plan();
  report.quarantined = {{"fast_decode", 1, "class", "BF16", 17, 0, "row 3 is off"}};
  const Json verify = Json::parse(verify_json(report));
  EXPECT_EQ(verify["schema"], "gearshift.verify/1");
  EXPECT_EQ(verify["rows"].size(), 0U);
  EXPECT_EQ(verify["quarantined"][0]["m_min"], 17);
  EXPECT_TRUE(verify["quarantined"][0]["m_max"].is_null());
}

TEST(InspectJson, TensorsAndLayers) {
  InspectReport report;
  report.path = "/models/tiny";
  report.files = {{"/models/tiny/model.safetensors", false}};
  report.tensors = {{"head.weight", DType::bf16, {8, 384}, 0, 100, 6144}, {"scalar", DType::f32, {}, 0, 6244, 4}};
  report.layers = {test::float_layer("head")};
  report.unknown = {{"other", "bitsandbytes 4 bit (nf4)"}};
  const Json inspect = Json::parse(inspect_json(report));
  EXPECT_EQ(
      inspect["tensors"][0],
      Json::parse(
          R"({"name": "head.weight", "dtype": "BF16", "shape": [8, 384], "bytes": 6144, "file": "/models/tiny/model.safetensors"})"));
  EXPECT_EQ(inspect["tensors"][1]["shape"], Json::array());
  EXPECT_EQ(inspect["layers"][0]["scheme"]["weight"]["format"], "float");
  EXPECT_EQ(inspect["layers"][0]["n"], 8);
  EXPECT_TRUE(inspect["quant_method"].is_null());
}

TEST(KernelsJson, ContractAsData) {
  const Json kernels = Json::parse(kernels_json(
      {{&test::sample_kernel(0), 1, 16, true, "first"}, {&test::sample_kernel(1), 1, 0, false, "needs more"}}));
  const Json& row = kernels["kernels"][0];
  for (const char* key : {"kernel", "backend", "families", "platform", "layout", "activation", "m_min", "m_max",
                          "verified", "runnable", "reason", "contract"}) {
    EXPECT_TRUE(row.contains(key)) << key;
  }
  EXPECT_EQ(row["m_max"], 16);
  EXPECT_EQ(
      row["contract"],
      Json::parse(
          R"({"isa": ["avx2"], "weight_formats": ["e2m1"], "k": ["at least 16, a multiple of 16"], "experts": ["no"]})"));
  EXPECT_TRUE(kernels["kernels"][1]["m_max"].is_null());
  EXPECT_EQ(kernels["kernels"][1]["contract"], Json::object());
}

TEST(DevicesJson, Keys) {
  DeviceProfile device;
  device.name = "NVIDIA GB10";
  device.platform = Platform::cuda;
  device.arch = "sm_121";
  device.aliases = {"gb10"};
  const Json devices = Json::parse(devices_json({device}));
  EXPECT_EQ(devices["schema"], "gearshift.devices/1");
  for (const char* key : {"name", "platform", "arch", "present", "aliases"})
    EXPECT_TRUE(devices["devices"][0].contains(key)) << key;
  EXPECT_EQ(devices["devices"][0]["aliases"][0], "gb10");
}

TEST(DoctorJson, Keys) {
  DoctorReport report;
  report.build = {{"version", "1"}};
  report.launch_tests = {{"fast_decode", true, ""}};
  report.options = {{"batch", {{"1,2"}, "environment"}}};
  const Json doctor = Json::parse(doctor_json(report));
  for (const char* key : {"device", "driver", "libraries", "build", "store", "launch_tests", "options"})
    EXPECT_TRUE(doctor.contains(key)) << key;
  EXPECT_TRUE(doctor["driver"].is_null());
  EXPECT_EQ(doctor["options"]["batch"], Json::parse(R"({"value": ["1,2"], "source": "environment"})"));
}

TEST(QuantizeJson, Layers) {
  QuantizeReport report;
  report.out = "/out";
  report.layers = {{"a", "NVFP4", 8, 16, 0.1, 0.99, 0.2, 256, 80}};
  report.notes = {"a default was used"};
  const Json parsed = Json::parse(quantize_json(report));
  EXPECT_EQ(parsed["layers"][0]["bytes_after"], 80);
  EXPECT_EQ(parsed["notes"][0], "a default was used");
}

}  // namespace
}  // namespace gearshift
