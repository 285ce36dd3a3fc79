// How do our kernels stand against oneDNN on this machine, in this minute?
//
//   bench_peers [--shape N,K]... [--batch M,...] [--threads N]
//
// Both run on the same pinned threads, in turn with the ceilings, and read weights that add up to 1 GiB. oneDNN is
// given what it likes: weights in its own blocked order, for u8s8 activations that are quantized already, and int32
// results; ours start from bf16 activations and end with bf16 outputs. Where oneDNN was not found at configure time
// (Debian: libdnnl-dev), or has nothing for this processor, its columns say so.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>

#include "base/try.h"
#include "gearshift/pipeline.h"
#include "kernel/cpu/isa.h"
#include "measure/bench_cell.h"
#include "measure/ceilings/floor.h"
#include "measure/ceilings/meter.h"
#include "measure/pinned_threads.h"
#include "measure/timer.h"
#include "pipeline/options.h"
#include "plan/arithmetic.h"
#include "report/quantities.h"
#include "report/table.h"
#include "report/terminal.h"
#include "report/usage.h"

#if defined(GEARSHIFT_WITH_ONEDNN)
#include <dnnl.hpp>
#endif

namespace gearshift {
namespace {

constexpr uint64_t kRotatedBytes = uint64_t{1} << 30;
constexpr int kRounds = 5;
constexpr int kSamples = 20;
constexpr std::chrono::milliseconds kTime{60};

// One multiplication of a peer, with enough copies of its weights.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void call() = 0;

  void take() {
    call();
    double spent = 0;
    for (int i = 0; i < kSamples && spent < std::chrono::duration<double, std::micro>(kTime).count(); ++i) {
      const auto begin = std::chrono::steady_clock::now();
      call();
      samples_us_.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
      spent += samples_us_.back();
    }
  }
  double median_us() const { return quantiles(samples_us_).median; }

 private:
  std::vector<double> samples_us_;
};

#if defined(GEARSHIFT_WITH_ONEDNN)

class OneDnn : public Peer {
 public:
  OneDnn(Family family, int64_t m, int64_t n, int64_t k) : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Type = dnnl::memory::data_type;
    using Tag = dnnl::memory::format_tag;
    const bool bf16 = family == Family::bf16;
    const dnnl::memory::desc x({m, k}, bf16 ? Type::bf16 : Type::u8, Tag::ab),
        y({m, n}, bf16 ? Type::bf16 : Type::s32, Tag::ab);
    const dnnl::memory::desc any({k, n}, bf16 ? Type::bf16 : Type::s8, Tag::any);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine_, x, any, y);
#else
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, any, y), engine_);
#endif
    primitive_ = dnnl::matmul(description);
    const dnnl::memory::desc packed = description.weights_desc();
    const size_t stride = (packed.get_size() + 63) / 64 * 64;
    const size_t copies = (kRotatedBytes + stride - 1) / stride;
    slab_ = AlignedBuffer(stride * copies);
    x_ = dnnl::memory(x, engine_);
    y_ = dnnl::memory(y, engine_);
    fill(x_.get_data_handle(), x.get_size(), bf16);
    dnnl::memory plain({{k, n}, bf16 ? Type::bf16 : Type::s8, Tag::ba}, engine_);
    fill(plain.get_data_handle(), plain.get_desc().get_size(), bf16);
    for (size_t copy = 0; copy < copies; ++copy) {
      weights_.emplace_back(packed, engine_, slab_.data() + copy * stride);
      if (copy > 0) {
        std::memcpy(slab_.data() + copy * stride, slab_.data(), packed.get_size());
      } else {
        dnnl::reorder(plain, weights_[0]).execute(stream_, plain, weights_[0]);
        stream_.wait();
      }
    }
  }

  void call() override {
    primitive_.execute(stream_, {{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, weights_[turn_]}, {DNNL_ARG_DST, y_}});
    stream_.wait();
    turn_ = (turn_ + 1) % weights_.size();
  }

 private:
  // Bytes of any value; bf16 numbers between 0.03 and 0.5 of either sign.
  static void fill(void* data, size_t bytes, bool bf16) {
    std::mt19937 random(1);
    auto* out = static_cast<uint8_t*>(data);
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(random());
    for (size_t i = 1; bf16 && i < bytes; i += 2) out[i] = static_cast<uint8_t>((out[i] & 0x80) | 0x3D);
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  AlignedBuffer slab_;
  dnnl::memory x_, y_;
  std::vector<dnnl::memory> weights_;
  size_t turn_ = 0;
};

std::string peer_name() {
  return fmt::format("oneDNN {}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
}

std::unique_ptr<Peer> make_peer(Family family, int64_t m, int64_t n, int64_t k, std::string& why_not) {
  try {
    return std::make_unique<OneDnn>(family, m, n, k);
  } catch (const dnnl::error& error) {
    why_not = error.what();
    return nullptr;
  }
}

#else

std::string peer_name() { return "oneDNN (not in this build)"; }

std::unique_ptr<Peer> make_peer(Family, int64_t, int64_t, int64_t, std::string& why_not) {
  why_not = "not found when this was configured";
  return nullptr;
}

#endif

// One type and batch size: ours, and the peer where it can.
struct Point {
  LayerSpec spec;
  int64_t m = 0;
  std::unique_ptr<RotatingLayer> layer;
  std::optional<BenchCell> ours;
  std::unique_ptr<Peer> peer;
  std::string why_not;
};

struct Request {
  std::vector<std::pair<int64_t, int64_t>> shapes = {{4096, 4096}};
  std::vector<int64_t> batch = {1, 16, 256};
  int threads = 1;
};

Result<Plan> plan_of(const LayerSpec& spec, const DeviceProfile& host, int threads) {
  PlanRequest request;
  request.layers = {spec};
  request.device = host;
  request.policy.threads = threads;
  return make_plan(std::move(request));
}

Result<Point> make_point(Family family, int64_t n, int64_t k, int64_t m, const DeviceProfile& host, int threads) {
  Point point;
  point.spec = made_up_spec(common_scheme(family), {n}, k);
  point.m = m;
  GEARSHIFT_TRY(const Plan plan, plan_of(point.spec, host, threads));
  const Kernel& kernel = *range_for(*plan.layers.front().decision, m).kernel;
  GEARSHIFT_TRY(point.layer, RotatingLayer::make(point.spec, {kernel.layout}, 1, threads, kRotatedBytes));
  GEARSHIFT_TRY(point.ours, BenchCell::make(kernel, *point.layer, m, DType::bf16, 1, threads));
  Judge judge(point.layer->weights(), 1, threads);
  if (const Comparison& comparison = point.ours->check(judge); !comparison.ok)
    return ErrorInfo{
        ErrorCode::self_check, std::string(kernel.name), comparison.failure, "the reference's numbers", "", {}};
  point.peer = make_peer(family, m, n, k, point.why_not);
  return point;
}

std::string ratio_to(const Floor& floor, double us) {
  return fmt::format("{} {}", floor.ceiling, percent_text(floor.us / us));
}

Result<std::string> compare(const Request& request, const DeviceProfile& host) {
  GEARSHIFT_TRY(CeilingMeter meter, CeilingMeter::make(active_isa(), request.threads, kRotatedBytes));
  struct Line {
    Point point;
    double ours_us = 0, peer_us = 0;
  };
  std::vector<Line> lines;
  for (const auto& [n, k] : request.shapes) {
    for (const Family family : {Family::bf16, Family::int8_w8a8}) {
      for (const int64_t m : request.batch) {
        GEARSHIFT_TRY(Point point, make_point(family, n, k, m, host, request.threads));
        for (int round = 0; round < kRounds; ++round) {
          meter.sample();
          point.ours->take(kSamples, kTime);
          if (point.peer) point.peer->take();
        }
        Line line;
        line.ours_us = point.ours->timing()->median_us;
        if (point.peer) line.peer_us = point.peer->median_us();
        point.layer.reset();  // a GiB each
        point.peer.reset();
        line.point = std::move(point);
        lines.push_back(std::move(line));
      }
    }
  }

  using Kind = Table::Kind;
  Table table({{"type", Kind::word},
               {"shape", Kind::word},
               {"batch", Kind::number},
               {"kernel", Kind::name},
               {"time", Kind::number},
               {"of ceiling", Kind::number},
               {peer_name(), Kind::number},
               {"of ceiling", Kind::number},
               {"ours is", Kind::number}});
  const std::vector<Ceiling> ceilings = meter.ceilings();
  for (const Line& line : lines) {
    const LayerSpec& spec = line.point.spec;
    const Kernel& kernel = line.point.ours->kernel();
    const Floor floor = floor_of(ceilings, spec, activation_word(kernel, spec, DType::bf16), line.point.m);
    const bool peer = line.peer_us > 0;
    table.row({std::string(name(spec.family)), shape_text(spec.n, spec.k), std::to_string(line.point.m),
               std::string(kernel.name), time_text(line.ours_us), ratio_to(floor, line.ours_us),
               peer ? time_text(line.peer_us) : "-", peer ? ratio_to(floor, line.peer_us) : "-",
               peer ? fmt::format("{:.2f} x as fast", line.peer_us / line.ours_us) : "-"});
  }
  std::string out = fmt::format("{}, {}, {} threads\n", host.name, host.arch, request.threads);
  for (const Ceiling& ceiling : ceilings)
    out += fmt::format("  {:5} {:8.1f} {:8} {}\n", ceiling.name, ceiling.value, ceiling.unit, ceiling.instruction);
  out += "\n" + table.render(terminal_width(stdout));
  for (const Line& line : lines) {
    if (!line.point.why_not.empty())
      out += fmt::format("{} {}: no peer: {}\n", name(line.point.spec.family), line.point.m, line.point.why_not);
  }
  return out;
}

// The words of the command line mean what they mean for `gearshift bench`.
Result<Request> read_request(const std::vector<std::string>& words, const DeviceProfile& host) {
  Options options;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    OptionValue& value = options[words[i].substr(std::min<size_t>(2, words[i].size()))];
    value.source = "command line";
    value.values.push_back(words[i + 1]);
  }
  GEARSHIFT_TRY(const Settings settings, read_settings(options));
  Request request;
  if (!settings.shapes.empty()) request.shapes = settings.shapes;
  if (settings.batch_given) request.batch = settings.policy.batch;
  request.threads = settings.threads > 0 ? settings.threads : std::max(1, host.cores);
  return request;
}

Result<std::string> peers(const std::vector<std::string>& words) {
  const char* max_isa = std::getenv("GEARSHIFT_MAX_ISA");
  GEARSHIFT_TRY(const DeviceProfile host, host_cpu(max_isa == nullptr ? "" : max_isa));
  set_max_isa(host.isa);
  GEARSHIFT_TRY(const Request request, read_request(words, host));
  const PinnedThreads pin(request.threads);
  return compare(request, host);
}

}  // namespace
}  // namespace gearshift

int main(int argc, char** argv) {
  const auto table = gearshift::peers({argv + 1, argv + argc});
  if (!table) {
    std::fputs(gearshift::error_lines(table.error()).c_str(), stderr);
    return gearshift::exit_code(table.error().code);
  }
  std::fputs(table->c_str(), stdout);
  return 0;
}
