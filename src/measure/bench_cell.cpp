#include "measure/bench_cell.h"

#include <cstring>

#include "base/try.h"
#include "measure/poison.h"
#include "measure/timer.h"

namespace gearshift {

Result<BenchCell> BenchCell::make(const Kernel& kernel, RotatingLayer& layer, int64_t m, DType dtype, uint64_t seed,
                                  int threads) {
  BenchCell cell;
  const LayerSpec& spec = layer.spec();
  cell.kernel_ = &kernel;
  cell.layer_ = &layer;
  cell.seed_ = seed;
  cell.threads_ = threads;
  const int64_t scratch = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(spec, m, threads);
  GEARSHIFT_TRY(cell.x_, allocate_matrix(dtype, m, spec.k, "input of a benchmark"));
  GEARSHIFT_TRY(cell.y_, allocate_matrix(dtype, m, spec.n, "output of a benchmark"));
  GEARSHIFT_TRY(cell.workspace_, allocate_matrix(DType::f32, 1, (scratch + 3) / 4, "workspace of a benchmark"));
  return cell;
}

const Comparison& BenchCell::check(Judge& judge) {
  const float limit = activation_limit(layer_->weights());
  make_activations(x_.view(), seed_, threads_, limit);
  std::memset(y_.bytes.data(), byte_of(Poison::nan), y_.bytes.size());
  if (workspace_.bytes.size() != 0) std::memset(workspace_.bytes.data(), byte_of(Poison::nan), workspace_.bytes.size());
  call();
  const ConstMatrix y = std::as_const(y_).view();
  comparison_ = judge.compare(*kernel_, std::as_const(x_).view(), y);
  if (const std::string left = find_poison(y); !left.empty()) {
    comparison_.ok = false;
    comparison_.failure = left;
  }
  make_plain_activations(x_.view(), seed_, threads_, limit);
  return comparison_;
}

double BenchCell::call() {
  RunArgs args;
  layer_->next(*kernel_, args);
  args.x = std::as_const(x_).view();
  args.y = y_.view();
  args.workspace = workspace_.bytes.span();
  args.threads = threads_;
  const auto begin = std::chrono::steady_clock::now();
  kernel_->run(args);
  last_us_ = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  return last_us_;
}

void BenchCell::take(int samples, std::chrono::microseconds budget) {
  const auto most = static_cast<double>(budget.count());
  double spent = last_us_ < most ? call() : 0;
  for (int i = 0; i < samples && (i == 0 || spent < most); ++i) {
    samples_us_.push_back(call());
    spent += samples_us_.back();
  }
}

std::optional<Timing> BenchCell::timing() const {
  if (samples_us_.empty()) return std::nullopt;
  return summarize(samples_us_);
}

}  // namespace gearshift
