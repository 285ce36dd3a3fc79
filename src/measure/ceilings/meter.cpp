#include "measure/ceilings/meter.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/text.h"
#include "measure/timer.h"

namespace gearshift {

namespace {

// Long enough that starting together and the clock do not count, short enough to be taken often.
constexpr double kPeakSeconds = 3e-3;
constexpr size_t kReadStep = 4096;
constexpr size_t kShapesKept = 3;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Wall time of body(thread, threads) on all threads, from when all are there until all are done.
template <class Body>
double time_together(int threads, int* ran, const Body& body) {
  double seconds = 0;
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp barrier
    const auto begin = std::chrono::steady_clock::now();
    body(thread, all);
#pragma omp barrier
    if (thread == 0) {
      seconds = seconds_since(begin);
      *ran = all;
    }
  }
  return seconds;
}

}  // namespace

Result<CeilingMeter> CeilingMeter::make(Isa isa, int threads, size_t read_bytes) {
  CeilingMeter meter;
  meter.threads_ = threads;
  read_bytes = std::max(read_bytes / kReadStep, static_cast<size_t>(threads)) * kReadStep;
  meter.memory_ = AlignedBuffer(read_bytes);
  if (meter.memory_.size() == 0) {
    return ErrorInfo{ErrorCode::runtime,
                     "memory bandwidth",
                     "not enough memory",
                     format_bytes(read_bytes) + " to read",
                     "--memory-limit BYTES lowers it",
                     {}};
  }
  // Written by the thread that reads it: untouched memory is one page of zeros, and pages lie near their first user.
  int ran = 1;
  uint8_t* bytes = meter.memory_.data();
  time_together(threads, &ran, [&](int thread, int all) {
    const size_t share = read_bytes / static_cast<size_t>(all) / kReadStep * kReadStep;
    std::memset(bytes + static_cast<size_t>(thread) * share, 0x5A + thread % 16, share);
  });

  for (const ReadShape& shape : read_shapes(isa))
    meter.reads_.push_back({shape, std::max(meter.read_once(shape), meter.read_once(shape)), {}});
  std::sort(meter.reads_.begin(), meter.reads_.end(),
            [](const ReadMeter& a, const ReadMeter& b) { return a.first > b.first; });
  meter.reads_.resize(std::min(kShapesKept, meter.reads_.size()));
  for (const Peak& peak : peaks_for(isa)) {
    PeakMeter one{peak, 256, {}};
    // The shortest of three: an interrupted call must not pass for a long one.
    const auto shortest = [&] {
      double least = kPeakSeconds;
      for (int i = 0; i < 3; ++i) {
        double seconds = 0;
        meter.run_once(peak, one.rounds, seconds);
        least = std::min(least, seconds);
      }
      return least;
    };
    while (shortest() < kPeakSeconds / 2) one.rounds *= 2;
    meter.peaks_.push_back(std::move(one));
  }
  return meter;
}

double CeilingMeter::read_once(const ReadShape& shape) {
  const uint8_t* bytes = memory_.data();
  const size_t size = memory_.size();
  uint64_t sum = 0;
  size_t read = 0;
  int ran = 1;
  const double seconds = time_together(threads_, &ran, [&](int thread, int all) {
    const size_t share = size / static_cast<size_t>(all) / kReadStep * kReadStep;
    const uint64_t part = shape.read(bytes + static_cast<size_t>(thread) * share, share);
#pragma omp atomic
    sum += part;
    if (thread == 0) read = share * static_cast<size_t>(all);
  });
  sink_ += sum;
  return static_cast<double>(read) / seconds / 1e9;
}

double CeilingMeter::run_once(const Peak& peak, int64_t rounds, double& seconds) {
  int ran = 1;
  seconds = time_together(threads_, &ran, [&](int, int) { peak.run(rounds); });
  return peak.operations * static_cast<double>(rounds) * ran / seconds / 1e9;
}

void CeilingMeter::sample() {
  for (ReadMeter& one : reads_) one.per_second.push_back(read_once(one.shape));
  constexpr int kTurns = 3;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (PeakMeter& one : peaks_) {
      double seconds = 0;
      one.per_second.push_back(run_once(one.peak, one.rounds, seconds));
    }
  }
}

std::vector<Ceiling> CeilingMeter::ceilings() const {
  const auto ceiling = [](std::string name, std::string_view unit, std::string how, std::vector<double> samples) {
    const Quantiles q = quantiles(std::move(samples));
    return Ceiling{std::move(name), std::string(unit), std::move(how), q.median, q.p10, q.p90, q.samples};
  };
  const ReadMeter* best = &reads_.front();
  for (const ReadMeter& one : reads_) {
    if (quantiles(one.per_second).median > quantiles(best->per_second).median) best = &one;
  }
  const ReadShape& shape = best->shape;
  std::string how = fmt::format("{} of memory, {} read side by side by each thread", format_bytes(memory_.size()),
                                shape.streams == 1 ? "one stream" : fmt::format("{} streams", shape.streams));
  if (shape.prefetch_bytes != 0) how += fmt::format(", prefetched {} bytes ahead", shape.prefetch_bytes);
  std::vector<Ceiling> all = {ceiling("dram", "GB/s", how, best->per_second)};
  for (const PeakMeter& one : peaks_)
    all.push_back(
        ceiling(std::string(one.peak.name), one.peak.unit, std::string(one.peak.instruction), one.per_second));
  return all;
}

}  // namespace gearshift
