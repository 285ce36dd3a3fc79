// Expert rows from files to outputs, expert by expert, against products in float64 of weights that the test decodes
// itself. Activations are chosen so that the recipes of the checkpoints hold them exactly.
#include <cmath>
#include <random>

#include "gearshift/run.h"
#include "pipeline/made_model.h"

namespace gearshift {
namespace {

double e2m1_of(int code) {
  constexpr double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return code & 8 ? -values[code & 7] : values[code & 7];
}
double e4m3_of(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 128 ? -magnitude : magnitude;
}

// One expert of a row: y[n] = sum over k of w[n,k] x[k] + bias[n].
struct KnownExpert {
  int64_t n = 0, k = 0;
  std::vector<double> w, bias;

  // The rows of another part below these.
  void append(const KnownExpert& part) {
    n += part.n;
    k = part.k;
    w.insert(w.end(), part.w.begin(), part.w.end());
    bias.insert(bias.end(), part.bias.begin(), part.bias.end());
  }
};

class ExpertRows : public MadeModel {
 protected:
  ExpertRows() : seed_(std::random_device{}()), random_(seed_) {}

  int64_t below(int64_t limit) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit)); }
  std::vector<uint8_t> random_bytes(int64_t count) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    return bytes;
  }
  // x[m,k] from `values`, the first of which stands in every group of 16 columns.
  std::vector<float> activations(int64_t m, int64_t k, const std::vector<float>& values) {
    std::vector<float> x(static_cast<size_t>(m * k));
    for (int64_t i = 0; i < m * k; ++i) {
      const bool first = i % k % 16 == 5;
      const float value = values[static_cast<size_t>(first ? 0 : below(static_cast<int64_t>(values.size())))];
      x[static_cast<size_t>(i)] = below(2) == 0 ? value : -value;
    }
    return x;
  }
  // Every kernel that the plan may use, on every expert of the row, at several batch sizes.
  void expect_products(const std::string& row, const std::vector<KnownExpert>& experts,
                       const std::vector<float>& values) {
    const auto checkpoint = Checkpoint::open(directory_);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
    const auto plan = plan_model(directory_, options("1,40"));
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    const auto found = std::find_if(plan->layers.begin(), plan->layers.end(),
                                    [&](const LayerPlan& layer) { return layer.layer.name == row; });
    ASSERT_NE(found, plan->layers.end()) << row;
    ASSERT_EQ(found->layer.experts, static_cast<int64_t>(experts.size()));
    ASSERT_EQ(found->layer.kind, LayerKind::experts);
    auto prepared = prepare(*checkpoint, *found, 2);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message();
    for (const int64_t m : {1, 5, 17, 40}) {
      const std::vector<float> x = activations(m, found->layer.k, values);
      for (const Verdict& candidate : found->decision->candidates) {
        const Kernel& kernel = *candidate.kernel;
        const bool as_asked = kernel.activation == ActivationUse::as_checkpoint || !found->layer.scheme.activation;
        if (candidate.kind == VerdictKind::rejected || !as_asked) continue;
        ASSERT_TRUE(add_layout(*prepared, *kernel.layout, 2).ok());
        AlignedBuffer workspace(
            static_cast<size_t>(kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(found->layer, m, 2)));
        for (size_t e = 0; e < experts.size(); ++e) {
          SCOPED_TRACE(std::string(kernel.name) + ", expert " + std::to_string(e) + ", m " + std::to_string(m));
          const KnownExpert& known = experts[e];
          ASSERT_EQ(known.n, found->layer.n);
          ASSERT_EQ(known.k, found->layer.k);
          std::vector<float> y(static_cast<size_t>(m * known.n), std::nanf(""));
          run_kernel(kernel, *prepared, {x.data(), DType::f32, m, known.k, known.k},
                     {y.data(), DType::f32, m, known.n, known.n}, workspace.span(), 2, static_cast<int64_t>(e));
          expect_close(known, x, y, m);
        }
      }
    }
  }
  static void expect_close(const KnownExpert& known, const std::vector<float>& x, const std::vector<float>& y,
                           int64_t m) {
    int64_t wrong = 0;
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t n = 0; n < known.n; ++n) {
        double sum = known.bias.empty() ? 0 : known.bias[static_cast<size_t>(n)], magnitude = std::fabs(sum);
        for (int64_t k = 0; k < known.k; ++k) {
          const double product =
              known.w[static_cast<size_t>(n * known.k + k)] * x[static_cast<size_t>(row * known.k + k)];
          sum += product;
          magnitude += std::fabs(product);
        }
        const double found = y[static_cast<size_t>(row * known.n + n)];
        if (!(std::fabs(found - sum) <= 1e-5 * magnitude) && ++wrong == 1)
          ADD_FAILURE() << "row " << row << ", column " << n << ": " << found << " instead of " << sum;
      }
    }
    EXPECT_EQ(wrong, 0);
  }
  // `run` and `verify` agree with themselves, too: every expert is judged.
  void expect_run_and_verify(const std::vector<std::pair<std::string, size_t>>& rows) {
    const auto ran = run(options("1,17"));
    ASSERT_TRUE(ran.ok()) << ran.error().message();
    EXPECT_EQ(ran->rows.size(), 2 * rows.size());
    for (const Measurement& row : ran->rows) EXPECT_TRUE(row.comparison.ok) << row.layer << row.comparison.failure;
    EXPECT_TRUE(ran->quarantined.empty() && ran->not_run.empty());
    const auto verified = verify(options("1,17"));
    ASSERT_TRUE(verified.ok()) << verified.error().message();
    EXPECT_TRUE(verified->quarantined.empty());
    for (const auto& [name, experts] : rows) {
      for (size_t e = 0; e < experts; ++e) {
        const std::string label = name + " (expert " + std::to_string(e) + ")";
        EXPECT_TRUE(std::any_of(verified->rows.begin(), verified->rows.end(), [&](const Measurement& row) {
          return row.layer == label && row.comparison.ok;
        })) << label;
      }
    }
  }

  uint64_t seed_;
  std::mt19937_64 random_;
};

// As gpt-oss stores them: stacks of MXFP4 blocks with biases, gate and up rows interleaved.
TEST_F(ExpertRows, StackOfMxfp4BlocksWithBiases) {
  SCOPED_TRACE(seed_);
  constexpr int64_t experts = 3, hidden = 64, inner = 96;
  const std::string prefix = "model.layers.0.mlp.experts.";
  std::vector<MadeTensor> tensors;
  const auto stack = [&](const std::string& stem, int64_t n, int64_t k) {
    std::vector<uint8_t> scales(static_cast<size_t>(experts * n * k / 32));
    for (uint8_t& scale : scales) scale = static_cast<uint8_t>(120 + below(9));
    const std::vector<uint8_t> codes = random_bytes(experts * n * k / 2);
    std::vector<KnownExpert> known(experts);
    std::vector<uint16_t> bias;
    for (int64_t e = 0; e < experts; ++e) {
      KnownExpert& expert = known[static_cast<size_t>(e)];
      expert.n = n;
      expert.k = k;
      for (int64_t i = e * n * k; i < (e + 1) * n * k; ++i) {
        const int code = codes[static_cast<size_t>(i / 2)] >> (i % 2 * 4) & 15;
        expert.w.push_back(e2m1_of(code) * std::ldexp(1.0, scales[static_cast<size_t>(i / 32)] - 127));
      }
      for (int64_t r = 0; r < n; ++r) {  // bf16: 1, 1.5 and -2.25 times powers of two
        constexpr uint16_t codes_of[] = {0x3F80, 0x3FC0, 0xC010, 0x0000};
        constexpr double values_of[] = {1, 1.5, -2.25, 0};
        const auto pick = static_cast<size_t>(below(4));
        bias.push_back(codes_of[pick]);
        expert.bias.push_back(values_of[pick]);
      }
    }
    tensors.push_back({prefix + stem + "_blocks", DType::u8, {experts, n, k / 32, 16}, codes});
    tensors.push_back({prefix + stem + "_scales", DType::u8, {experts, n, k / 32}, scales});
    tensors.push_back({prefix + stem + "_bias", DType::bf16, {experts, n}, bytes_of_values(bias)});
    return known;
  };
  const auto gate_up = stack("gate_up_proj", 2 * inner, hidden);
  const auto down = stack("down_proj", hidden, inner);
  write(R"({"architectures": ["GptOssForCausalLM"], "quantization_config": {"quant_method": "mxfp4"}})", tensors);
  const std::vector<float> any = {0.75f, 0, 1, 2.5f, 0.0625f, 13};
  expect_products(prefix + "gate_up_proj", gate_up, any);
  expect_products(prefix + "down_proj", down, any);
  expect_run_and_verify({{prefix + "gate_up_proj", experts}, {prefix + "down_proj", experts}});
}

// One module per expert: FP8 in blocks of 32 x 32, the last ones partial, activations scaled per 32 columns.
TEST_F(ExpertRows, ModulesOfFp8Blocks) {
  SCOPED_TRACE(seed_);
  constexpr int64_t experts = 4, hidden = 64, inner = 48, block = 32;
  const std::string prefix = "model.layers.3.mlp.experts.";
  std::vector<MadeTensor> tensors;
  const auto module = [&](const std::string& name, int64_t n, int64_t k) {
    std::vector<uint8_t> codes = random_bytes(n * k);
    for (uint8_t& code : codes) {
      if ((code & 0x7F) == 0x7F) code ^= 1;  // NaN
    }
    const int64_t across = (k + block - 1) / block;
    std::vector<float> scales(static_cast<size_t>((n + block - 1) / block * across));
    for (float& scale : scales) scale = static_cast<float>(1 + below(100)) * 0x1p-9f;
    KnownExpert known{n, k, {}, {}};
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = 0; c < k; ++c)
        known.w.push_back(e4m3_of(codes[static_cast<size_t>(r * k + c)]) *
                          scales[static_cast<size_t>(r / block * across + c / block)]);
    }
    tensors.push_back({name + ".weight", DType::f8_e4m3, {n, k}, codes});
    tensors.push_back(
        {name + ".weight_scale_inv", DType::f32, {(n + block - 1) / block, across}, bytes_of_values(scales)});
    return known;
  };
  std::vector<KnownExpert> gate_up, down, up;
  for (int64_t e = 0; e < experts; ++e) {
    const std::string name = prefix + std::to_string(e) + ".";
    gate_up.push_back(module(name + "gate_proj", inner, hidden));
    up.push_back(module(name + "up_proj", inner, hidden));
    gate_up.back().append(up.back());
    down.push_back(module(name + "down_proj", hidden, inner));
  }
  write(
      R"({"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [32, 32]}})",
      tensors);
  // Scaled by amax / 448 = 1, these are e4m3 already.
  const std::vector<float> exact = {448, 0, 1, -2, 13, 28, 0.125f, 240};
  expect_products(prefix + "gate_up_proj", gate_up, exact);
  expect_products(prefix + "down_proj", down, exact);
  expect_run_and_verify({{prefix + "gate_up_proj", experts}, {prefix + "down_proj", experts}});

  // One expert's part alone, by its name.
  const std::vector<float> x = activations(3, hidden, exact);
  const auto outputs = run_with({{prefix + "2.up_proj", DType::f32, {3, hidden}, bytes_of_values(x)}});
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  ASSERT_EQ(outputs->y.size(), 1u);
  expect_close(up[2], x, outputs->y.at(prefix + "2.up_proj"), 3);
}

// One module per expert: NVFP4 by compressed-tensors, gate and up with tensor-wide scales of their own.
TEST_F(ExpertRows, ModulesOfNvfp4) {
  SCOPED_TRACE(seed_);
  constexpr int64_t experts = 3, hidden = 64, inner = 48;
  const std::string prefix = "model.layers.0.mlp.experts.";
  std::vector<MadeTensor> tensors;
  const auto module = [&](const std::string& name, int64_t n, int64_t k, float global) {
    const std::vector<uint8_t> codes = random_bytes(n * k / 2);
    std::vector<uint8_t> scales(static_cast<size_t>(n * k / 16));
    for (uint8_t& scale : scales) scale = static_cast<uint8_t>(0x30 + below(0x18));
    KnownExpert known{n, k, {}, {}};
    for (int64_t i = 0; i < n * k; ++i) {
      const int code = codes[static_cast<size_t>(i / 2)] >> (i % 2 * 4) & 15;
      known.w.push_back(e2m1_of(code) * e4m3_of(scales[static_cast<size_t>(i / 16)]) / static_cast<double>(global));
    }
    tensors.push_back({name + ".weight_packed", DType::u8, {n, k / 2}, codes});
    tensors.push_back({name + ".weight_scale", DType::f8_e4m3, {n, k / 16}, scales});
    tensors.push_back({name + ".weight_global_scale", DType::f32, {1}, bytes_of_values(std::vector<float>{global})});
    tensors.push_back({name + ".input_global_scale", DType::f32, {1}, bytes_of_values(std::vector<float>{4})});
    return known;
  };
  std::vector<KnownExpert> gate_up, down;
  for (int64_t e = 0; e < experts; ++e) {
    const std::string name = prefix + std::to_string(e) + ".";
    gate_up.push_back(module(name + "gate_proj", inner, hidden, 3));
    gate_up.back().append(module(name + "up_proj", inner, hidden, static_cast<float>(5 + e)));
    down.push_back(module(name + "down_proj", hidden, inner, 7));
  }
  const std::string four = R"({"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16)";
  write(R"({"quantization_config": {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized",
           "config_groups": {"group_0": {"targets": ["Linear"], "weights": )" +
            four + R"(, "dynamic": false}, "input_activations": )" + four + R"(, "dynamic": "local"}}}}})",
        tensors);
  // Blocks with the largest element 6 have the scale 4 * 6 / 6 over 4: these are e2m1 already.
  const std::vector<float> exact = {6, 0, 0.5f, 1, 1.5f, 2, 3, 4};
  expect_products(prefix + "gate_up_proj", gate_up, exact);
  expect_products(prefix + "down_proj", down, exact);
  expect_run_and_verify({{prefix + "gate_up_proj", experts}, {prefix + "down_proj", experts}});
}

}  // namespace
}  // namespace gearshift
