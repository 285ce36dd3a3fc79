// How fast grouped expert calls are on a GPU: against what reading the active experts' weights takes, and against the
// same experts launched one by one. CUDA-graph medians; the read ceiling is measured in the same run. Writes a
// gearshift.bench/1 document.
//
// usage: bench_cuda_experts FILE.json [--sweep] [--formats N,N] [--models N,N] [--batch M,M] [--skew S]
//   --sweep: every pair of tactics in which one is the chosen one; --models: names of models() below; --skew: Zipf
//   exponent of the routing (0: uniform)
#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <string>

#include "base/text.h"
#include "cuda_document.h"
#include "gearshift/moe.h"
#include "kernel/cuda/grouped.h"
#include "kernel_named.h"
#include "measure/activations.h"
#include "measure/device_run.h"
#include "measure/experts_cell.h"
#include "measure/rotating_experts.h"
#include "read_floor.h"

namespace {

using namespace gearshift;
using namespace gearshift::bench;

struct Model {
  const char* name;
  int64_t experts, top_k, k, hidden;
  bool gated;
  ExpertFunction function;
};
constexpr ExpertFunction kSilu{ExpertFunction::Kind::silu, 1, 0, 0};
constexpr Model kModels[] = {{"qwen3-30b-a3b", 128, 8, 2048, 768, true, kSilu},
                             {"gpt-oss-120b", 128, 4, 2880, 2880, true, {ExpertFunction::Kind::silu, 1.702f, 7, 1}},
                             {"nemotron-3-super", 512, 22, 1024, 2688, false, {ExpertFunction::Kind::relu2, 1, 0, 0}}};

struct StoredAs {
  const char* name;
  const char* kernel;
  const char* many;  // for experts with more rows than that takes
  Scheme scheme;
};
std::vector<StoredAs> formats() {
  const auto weight_only = [](Family family) {
    Scheme scheme = common_scheme(family);
    scheme.activation.reset();
    return scheme;
  };
  return {{"nvfp4", "sm80_nvfp4_w4a16_stream", "sm90_nvfp4_w4a16_prefill", common_scheme(Family::nvfp4_w4a16)},
          {"mxfp4", "sm80_mxfp4_stream", "sm90_mxfp4_prefill", weight_only(Family::mxfp4)},
          {"int4", "sm80_int4_w4a16_stream", "sm90_int4_w4a16_prefill", common_scheme(Family::mixed_precision)},
          {"fp8_w8a8", "sm80_fp8_w8a8_stream", "sm80_fp8_w8a8_emulation", common_scheme(Family::fp8_w8a8)},
          {"fp8_block_w8a8", "sm80_fp8_block_w8a8_stream", "sm80_fp8_block_w8a8_emulation",
           common_scheme(Family::fp8_block_w8a8)},
          {"mxfp8", "sm80_mxfp8_stream", "sm80_mxfp8_emulation", weight_only(Family::mxfp8)}};
}

struct Arguments {
  std::string file, formats = "nvfp4,mxfp4,int4", models = "qwen3-30b-a3b,gpt-oss-120b,nemotron-3-super";
  std::vector<int64_t> batch = {1, 4, 16, 64, 256, 2048};
  double skew = 0;
  bool sweep = false;
};

// One projection's experts in device memory: all hold the same numbers, each at addresses of its own.
class Projection {
 public:
  Projection(const StoredAs& format, int64_t experts, const std::vector<int64_t>& rows, int64_t k) {
    const Kernel& kernel = kernel_named(format.kernel);
    made_ = make_up_layer(format.scheme, rows, k, 1);
    check(use_kernel(*made_, kernel, 16));
    plan_ = made_->plan;
    plan_.layer = made_up_experts(format.scheme, experts, rows, k, DType::bf16);
    auto decision = std::make_shared<Decision>();
    decision->ranges.push_back({1, 16, &kernel, "static", ""});
    const Kernel& many = kernel_named(format.many);
    decision->ranges.push_back({17, 0, many.layout == kernel.layout ? &many : &kernel, "static", ""});
    plan_.decision = std::move(decision);
    prepared_.plan = &plan_;
    LayerWeights weights = made_->prepared.weights.front();
    weights.spec = &plan_.layer;
    prepared_.weights.assign(static_cast<size_t>(experts), weights);
    const int64_t stride = prepared_.expert_stride(*kernel.layout);
    DeviceBuffer all = get(DeviceBuffer::allocate(static_cast<size_t>(stride * experts)));
    for (int64_t e = 0; e < experts; ++e)
      check(cuda::copy(all.data() + e * stride, made_->prepared.packed_for(kernel),
                       static_cast<size_t>(kernel.layout->bytes(plan_.layer))));
    prepared_.on_device.emplace_back(kernel.layout, std::move(all));
  }
  Projection(const Projection&) = delete;
  const PreparedLayer& layer() const { return prepared_; }

 private:
  std::unique_ptr<MadeUpLayer> made_;
  LayerPlan plan_;
  PreparedLayer prepared_;
};

DeviceBuffer on_device(const void* from, size_t bytes) {
  DeviceBuffer buffer = get(DeviceBuffer::allocate(bytes));
  check(buffer.write(from, bytes));
  return buffer;
}

// A router's choice, in the memory of both.
struct Choice {
  MadeUpRouting host;
  DeviceBuffer experts, weights;
  std::vector<int64_t> rows_of;  // of every expert
  int64_t active = 0;

  Choice(MadeUpRouting made, int64_t count) : host(std::move(made)), rows_of(static_cast<size_t>(count)) {
    experts = on_device(host.experts.data(), host.experts.size() * 4);
    weights = on_device(host.weights.data(), host.weights.size() * 4);
    for (const int32_t e : host.experts) active += rows_of[static_cast<size_t>(e)]++ == 0 ? 1 : 0;
  }
  RoutedTokens view() const {
    return {host.tokens, host.top_k, reinterpret_cast<const int32_t*>(experts.data()),
            reinterpret_cast<const float*>(weights.data())};
  }
};

// Choices whose weights come from memory: where a call reads a few experts, the next one reads others.
std::vector<Choice> make_choices(const Model& model, int64_t tokens, double skew) {
  std::vector<Choice> choices;
  std::vector<int32_t> order(static_cast<size_t>(model.experts));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::mt19937_64 random(7);
  std::shuffle(order.begin(), order.end(), random);
  const int64_t entries = tokens * model.top_k, apart = std::max<int64_t>(1, model.experts / entries);
  for (int64_t i = 0; i < std::min<int64_t>(apart, 32); ++i) {
    MadeUpRouting routing = make_routing(tokens, model.top_k, model.experts, skew, static_cast<uint64_t>(11 + i));
    for (int64_t j = 0; entries <= model.experts && skew == 0 && j < entries; ++j)
      routing.experts[static_cast<size_t>(j)] = order[static_cast<size_t>((i * entries + j) % model.experts)];
    choices.emplace_back(std::move(routing), model.experts);
  }
  return choices;
}

double median_us(int64_t calls, const std::function<void(int64_t, void*)>& queue) {
  cuda::Graph graph = get(cuda::Graph::capture([&](void* stream) {
    for (int64_t i = 0; i < calls; ++i) queue(i, stream);
  }));
  (void)get(graph.replay_us());
  std::vector<double> samples;
  for (int i = 0; i < 9; ++i) samples.push_back(get(graph.replay_us()) / static_cast<double>(calls));
  return summarize(std::move(samples)).median_us;
}

class Bench {
 public:
  Bench(const Arguments& arguments, const ReadCeiling& ceiling) : arguments_(arguments), ceiling_(ceiling) {}

  void run(const Model& model, const StoredAs& format) {
    const std::vector<int64_t> rows =
        model.gated ? std::vector<int64_t>{model.hidden, model.hidden} : std::vector<int64_t>{model.hidden};
    const Projection first(format, model.experts, rows, model.k),
        second(format, model.experts, {model.k}, model.hidden);
    const DeviceExperts experts = get(DeviceExperts::make(first.layer(), second.layer(), model.function));
    for (const int64_t tokens : arguments_.batch) cell(model, format, experts, tokens);
  }
  const std::string& rows() const { return rows_; }

 private:
  static const Kernel& kernel_of(int which, const DeviceExperts& experts, int64_t tokens, int64_t top_k) {
    return experts.kernel(which, tokens, top_k, DType::bf16);
  }

  void cell(const Model& model, const StoredAs& format, const DeviceExperts& experts, int64_t tokens) {
    OwnedMatrix x = get(allocate_matrix(DType::bf16, tokens, model.k, "x"));
    make_activations(x.view(), 1, 16, INFINITY);
    const DeviceBuffer x_there = on_device(x.bytes.data(), x.bytes.size());
    const DeviceBuffer y = get(DeviceBuffer::allocate(static_cast<size_t>(tokens * model.k * 2)));
    DeviceBuffer workspace =
        get(DeviceBuffer::allocate(static_cast<size_t>(experts.workspace_bytes(tokens, model.top_k, DType::bf16))));
    const std::vector<Choice> choices = make_choices(model, tokens, arguments_.skew);
    const ConstMatrix in{x_there.data(), DType::bf16, tokens, model.k, model.k};
    const Matrix out{const_cast<uint8_t*>(y.data()), DType::bf16, tokens, model.k, model.k};
    const auto count = static_cast<int64_t>(choices.size());
    const int64_t calls = tokens > 512 ? 2 : std::max<int64_t>(count, 24 / count * count);
    const auto grouped = [&](std::span<const std::string_view> tactics) {
      return median_us(calls, [&](int64_t i, void* stream) {
        check(run_experts_on_device(experts, choices[static_cast<size_t>(i % count)].view(), in, out, workspace.span(),
                                    stream, tactics));
      });
    };
    row(model, format, experts, choices.front(), "grouped", "", grouped({}));
    if (arguments_.sweep) {
      for (int which = 0; which < 2; ++which) {
        for (const std::string_view tactic : cuda::grouped_tactics(kernel_of(which, experts, tokens, model.top_k))) {
          std::string_view tactics[2] = {};
          tactics[which] = tactic;
          if (!run_experts_on_device(experts, choices.front().view(), in, out, workspace.span(), nullptr, tactics))
            continue;
          row(model, format, experts, choices.front(), "grouped", fmt::format("{}:{}", which + 1, tactic),
              grouped(tactics));
        }
      }
    }
    if (tokens * model.top_k >= 64 * model.experts) dense(model, format, experts, choices.front());
    if (tokens <= 256) {
      const double us = median_us(count, [&](int64_t i, void* stream) {
        one_by_one(format, experts, choices[static_cast<size_t>(i % count)], in, workspace.span(), stream);
      });
      row(model, format, experts, choices.front(), "one by one", "", us);
    }
  }

  // As many tokens as an expert has, through one expert's projections as linear layers: the rate to be held.
  void dense(const Model& model, const StoredAs& format, const DeviceExperts& experts, const Choice& choice) {
    const int64_t rows = static_cast<int64_t>(choice.host.experts.size()) / model.experts;
    double us = 0, products = 0;
    for (int which = 0; which < 2; ++which) {
      const Kernel& kernel = kernel_named(format.many);
      const LayerSpec spec = one_expert(experts.layer(which).plan->layer);
      const auto layer = make_up_layer(spec, 1);
      check(use_kernel(*layer, kernel, 16));
      OwnedMatrix x = get(allocate_matrix(DType::bf16, rows, spec.k, "x"));
      make_activations(x.view(), 1, 16, INFINITY);
      us += get(time_on_device(kernel, layer->prepared, std::as_const(x).view(), 0)).median_us;
      products += 2.0 * static_cast<double>(spec.n * spec.k * rows);
    }
    std::printf("%-18s %-14s rows=%-5ld one expert as linear layers: %.2f us, %.1f TFLOP/s\n", model.name, format.name,
                rows, us, products / (us * 1e6));
  }

  Matrix first_results(const DeviceExperts& experts, const Choice& choice) {
    const int64_t n = experts.layer(0).plan->layer.n, entries = choice.host.tokens * choice.host.top_k;
    if (static_cast<int64_t>(results_.size()) < entries * n * 2)
      fail({ErrorCode::usage, "one by one", "too many tokens", "fewer", {}, {}});
    return {results_.data(), DType::bf16, entries, n, n};
  }

  // The launches alone: rows are taken as sorted already, and nothing is added up.
  void one_by_one(const StoredAs& format, const DeviceExperts& experts, const Choice& choice, const ConstMatrix& x,
                  std::span<uint8_t> workspace, void* stream) {
    const DeviceExpertStages stages =
        experts.stages(choice.host.tokens, choice.host.top_k, DType::bf16, workspace.data());
    for (int which = 0; which < 2; ++which) {
      const Matrix results = which == 0 ? first_results(experts, choice) : stages.outputs;
      int64_t row = 0;
      for (size_t e = 0; e < choice.rows_of.size(); ++e) {
        const int64_t rows = choice.rows_of[e];
        if (rows == 0) continue;
        const Kernel& kernel = kernel_named(rows <= 16 ? format.kernel : format.many);
        const PreparedLayer& layer = experts.layer(which);
        RunArgs args;
        args.weights = &layer.weights[e];
        args.packed = layer.packed_for(kernel, static_cast<int64_t>(e));
        args.x = x;
        if (which == 1) {
          args.x = {stages.activated.data, DType::bf16, rows, stages.activated.cols, stages.activated.stride};
          args.x.data = static_cast<uint8_t*>(stages.activated.data) + row * stages.activated.stride * 2;
        }
        args.x.rows = rows;
        args.y = results;
        args.y.data = static_cast<uint8_t*>(results.data) + row * results.stride * 2;
        args.y.rows = rows;
        args.workspace = scratch_.span();
        args.stream = stream;
        kernel.run(args);
        row += rows;
      }
    }
  }

  void row(const Model& model, const StoredAs& format, const DeviceExperts& experts, const Choice& choice,
           std::string_view how, std::string_view tactic, double us) {
    double bytes = 4.0 * static_cast<double>(choice.host.tokens * model.k), products = 0;
    for (int which = 0; which < 2; ++which) {
      const LayerSpec& spec = experts.layer(which).plan->layer;
      bytes += static_cast<double>(spec.weight_bytes) * static_cast<double>(choice.active) /
               static_cast<double>(model.experts);
      products += 2.0 * static_cast<double>(spec.n * spec.k) * static_cast<double>(choice.host.experts.size());
    }
    const double floor = std::max(ceiling_.floor_us(bytes), products / 820e6);
    rows_ += fmt::format(
        "{}    {{\"shape\": \"{}\", \"scheme\": \"{}\", \"experts\": {}, \"top_k\": {}, \"k\": {}, \"hidden\": {}, "
        "\"m\": {}, \"skew\": {}, \"active\": {}, \"kernel\": \"{}\", \"how\": \"{}\", \"tactic\": \"{}\", "
        "\"median_us\": {:.3f}, \"floor_us\": {:.3f}, \"over_floor\": {:.3f}, \"tflops\": {:.1f}}}",
        rows_.empty() ? "" : ",\n", model.name, format.name, model.experts, model.top_k, model.k, model.hidden,
        choice.host.tokens, arguments_.skew, choice.active, kernel_of(0, experts, choice.host.tokens, model.top_k).name,
        how, tactic, us, floor, us / floor, products / (us * 1e6));
    std::printf("%-18s %-14s M=%-5ld active=%-4ld %-10s %-22s %9.2f us  x%.3f  %.1f TFLOP/s\n", model.name, format.name,
                choice.host.tokens, choice.active, std::string(how).c_str(), std::string(tactic).c_str(), us,
                us / floor, products / (us * 1e6));
    std::fflush(stdout);
  }

  const Arguments& arguments_;
  const ReadCeiling& ceiling_;
  std::string rows_;
  DeviceBuffer results_ = get(DeviceBuffer::allocate(size_t{128} << 20));
  DeviceBuffer scratch_ = get(DeviceBuffer::allocate(size_t{256} << 20));  // of calls one by one
};

Arguments read(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (word == "--sweep")
      arguments.sweep = true;
    else if (word == "--formats")
      arguments.formats = value();
    else if (word == "--models")
      arguments.models = value();
    else if (word == "--skew")
      arguments.skew = std::stod(value());
    else if (word == "--batch") {
      arguments.batch.clear();
      for (const std::string& m : split(value(), ',')) arguments.batch.push_back(std::stoll(m));
    } else
      arguments.file = word;
  }
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = read(argc, argv);
  const std::vector<DeviceProfile> devices = cuda_devices();
  if (devices.empty()) fail(cuda::no_device("cuda"));
  check(use_device(devices.front()));
  const ReadCeiling ceiling = measure_ceiling();
  const DeviceProfile& device = devices.front();
  std::printf("%s, driver %s: reading takes %.2f us + bytes / %.0f GB/s\n", device.name.c_str(), device.driver.c_str(),
              ceiling.start_us, ceiling.gbytes_per_s);
  Bench bench(arguments, ceiling);
  for (const Model& model : kModels) {
    for (const StoredAs& format : formats()) {
      if (listed(arguments.models, model.name) && listed(arguments.formats, format.name)) bench.run(model, format);
    }
  }
  if (arguments.file.empty()) return 0;
  std::ofstream out(arguments.file);
  out << cuda_document(command_line("bench_cuda_experts", argc, argv), device, ceiling, bench.rows());
  return out.good() ? 0 : 1;
}
