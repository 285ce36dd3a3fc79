// Runs one kernel on one made layer inside poisoned, guarded memory, and judges every element.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "kernel/reference/reference.h"
#include "made_layer.h"

namespace gearshift::testing {

inline size_t element_bytes(DType dtype) { return dtype == DType::f32 ? 4 : 2; }

inline double read(const void* base, DType dtype, int64_t index) {
  if (dtype == DType::f32) return static_cast<const float*>(base)[index];
  const uint16_t code = static_cast<const uint16_t*>(base)[index];
  return dtype == DType::f16 ? format::decode_fp16(code) : format::decode_bf16(code);
}

inline void write(void* base, DType dtype, int64_t index, float value) {
  if (dtype == DType::f32) static_cast<float*>(base)[index] = value;
  if (dtype == DType::f16) static_cast<uint16_t*>(base)[index] = format::encode_fp16(value);
  if (dtype == DType::bf16) static_cast<uint16_t*>(base)[index] = format::encode_bf16(value);
}

// Bytes that start on a cache line, filled with 0xFF (NaN in every float type), with a guard of 64 bytes on both sides.
class Guarded {
 public:
  explicit Guarded(size_t bytes) : bytes_(bytes), memory_(bytes + 4 * 64, 0xFF) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    start_ = memory_.data() + (64 - address % 64) % 64 + 64;
    std::memset(start_ - 64, 0xC5, 64);
    std::memset(start_ + bytes, 0xC5, 64);
  }
  uint8_t* data() { return start_; }
  size_t size() const { return bytes_; }
  bool intact() const {
    for (int i = 0; i < 64; ++i) {
      if (start_[i - 64] != 0xC5 || start_[bytes_ + static_cast<size_t>(i)] != 0xC5) return false;
    }
    return true;
  }

 private:
  size_t bytes_;
  std::vector<uint8_t> memory_;
  uint8_t* start_;
};

// A matrix in guarded memory; rows are `gap` elements apart that nobody may touch.
class GuardedMatrix {
 public:
  GuardedMatrix(DType type, int64_t rows, int64_t cols, int64_t gap)
      : memory_(static_cast<size_t>(rows * (cols + gap)) * element_bytes(type)),
        dtype(type),
        rows_(rows),
        cols_(cols),
        stride_(cols + gap) {}
  Matrix matrix() { return {memory_.data(), dtype, rows_, cols_, stride_}; }
  ConstMatrix const_matrix() { return {memory_.data(), dtype, rows_, cols_, stride_}; }
  double at(int64_t m, int64_t n) { return read(memory_.data(), dtype, m * stride_ + n); }
  void set(int64_t m, int64_t n, float value) { write(memory_.data(), dtype, m * stride_ + n, value); }
  bool intact() {
    for (int64_t m = 0; m < rows_; ++m) {
      const uint8_t* from = memory_.data() + static_cast<size_t>(m * stride_ + cols_) * element_bytes(dtype);
      for (size_t i = 0; i < static_cast<size_t>(stride_ - cols_) * element_bytes(dtype); ++i) {
        if (from[i] != 0xFF) return false;
      }
    }
    return memory_.intact();
  }

 private:
  Guarded memory_;

 public:
  DType dtype;

 private:
  int64_t rows_, cols_, stride_;
};

// Activations as models have them: near 1, a few outliers, zeros, a zero row when there are several, a denormal.
inline void fill_activations(GuardedMatrix& x, int64_t rows, int64_t cols, std::mt19937_64& random) {
  std::normal_distribution<float> normal;
  for (int64_t m = 0; m < rows; ++m) {
    for (int64_t k = 0; k < cols; ++k) {
      const uint64_t kind = random() % 64;
      float value = normal(random);
      if (kind == 0) value *= 30;
      if (kind == 1) value = 0;
      if (kind == 2) value = 1e-6f;
      if (m == 1 || (m > 3 && m % 16 == 5)) value = 0;
      x.set(m, k, value);
    }
  }
}

struct Ran {
  std::vector<double> y;  // [M,N] as written
};

// Runs the kernel; memory rules are checked here, numbers by the caller.
inline Ran run_guarded(const Kernel& kernel, const MadeLayer& layer, GuardedMatrix& x, int64_t m, DType dtype,
                       int threads, int64_t gap = 3) {
  const LayerSpec& spec = layer.spec;
  Guarded packed(static_cast<size_t>(kernel.layout->bytes(spec)));
  kernel.layout->pack(layer.weights, packed.data(), threads);
  Guarded workspace(static_cast<size_t>(kernel.workspace_bytes(spec, m, threads)));
  GuardedMatrix y(dtype, m, spec.n, gap);
  RunArgs args;
  args.weights = &layer.weights;
  args.packed = packed.size() == 0 ? nullptr : packed.data();
  args.x = x.const_matrix();
  args.x.rows = m;
  args.y = y.matrix();
  args.workspace = {workspace.data(), workspace.size()};
  args.threads = threads;
  kernel.run(args);
  EXPECT_TRUE(workspace.intact()) << kernel.name << " wrote outside its workspace";
  EXPECT_TRUE(packed.intact()) << kernel.layout->name << " was packed outside its bytes";
  EXPECT_TRUE(y.intact()) << kernel.name << " wrote outside its output";
  Ran ran;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t n = 0; n < spec.n; ++n) ran.y.push_back(y.at(i, n));
  }
  return ran;
}

// What the reference says of the first `m` rows of x.
struct Answers {
  std::vector<double> y, magnitude;  // [M,N]
};
inline Answers answers(const Kernel& kernel, const MadeLayer& layer, GuardedMatrix& x, int64_t m) {
  std::vector<int64_t> rows(static_cast<size_t>(m));
  for (int64_t i = 0; i < m; ++i) rows[static_cast<size_t>(i)] = i;
  Answers wanted;
  wanted.y.resize(static_cast<size_t>(m * layer.spec.n));
  wanted.magnitude.resize(wanted.y.size());
  ConstMatrix view = x.const_matrix();
  view.rows = m;
  reference_rows(layer.weights, view, rows, kernel.activation, wanted.y.data(), wanted.magnitude.data(), 2);
  return wanted;
}

// How many elements are outside the kernel's bound, and where the first is. `wanted` may have more rows than were run.
struct Verdict {
  int64_t wrong = 0;
  std::string first;
};
inline Verdict judge(const Kernel& kernel, const LayerSpec& layer, const Answers& wanted, DType dtype, const Ran& ran) {
  const auto n = static_cast<size_t>(layer.n);
  Verdict verdict;
  for (size_t i = 0; i < ran.y.size(); ++i) {
    if (within_bound(kernel, layer.k, wanted.magnitude[i], wanted.y[i], ran.y[i], dtype)) continue;
    if (verdict.wrong++ == 0) {
      verdict.first = "row " + std::to_string(i / n) + ", column " + std::to_string(i % n) + ": " +
                      std::to_string(ran.y[i]) + " instead of " + std::to_string(wanted.y[i]);
    }
  }
  return verdict;
}
inline Verdict judge(const Kernel& kernel, const MadeLayer& layer, GuardedMatrix& x, int64_t m, DType dtype,
                     const Ran& ran) {
  return judge(kernel, layer.spec, answers(kernel, layer, x, m), dtype, ran);
}

}  // namespace gearshift::testing
