// One guarded launch: poison inside, canaries around, and a look at both afterwards.
#pragma once

#include "gearshift/measure.h"
#include "measure/activations.h"
#include "measure/poison.h"

namespace gearshift {

// Bytes with a canary on either side, and beyond those memory that ends the process when it is touched; data() is
// 64-byte aligned, and the canary behind it starts at its last byte.
class GuardedBuffer {
 public:
  GuardedBuffer(size_t bytes, Poison poison);
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer();
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  std::span<uint8_t> span() { return {data_, bytes_}; }
  // With both canaries.
  std::span<uint8_t> whole() { return {data_ - canary_bytes, bytes_ + 2 * canary_bytes}; }
  bool allocated() const { return data_ != nullptr; }
  // Where a canary was overwritten: "4 bytes before", "0 bytes behind"; "" when both are whole.
  std::string damage() const;

 private:
  static constexpr size_t canary_bytes = 256;
  uint8_t* data_ = nullptr;
  size_t bytes_;
  void* mapped_ = nullptr;
  size_t mapped_bytes_ = 0;
};

// Activations [m,K] and the memory of an output [m,N], with rows further apart than they are long.
class Trial {
 public:
  // Fills x with made-up activations. `gap`: elements between the end of a row and the next; those of x hold NaN.
  Trial(const LayerWeights& weights, int64_t m, DType dtype, uint64_t seed, int threads, int64_t gap);
  ConstMatrix x() const;
  // What went wrong with memory when `kernel` ran on this x into fresh, poisoned memory; "" when nothing. Afterwards
  // y() is its output.
  std::string launch(const Kernel& kernel, const PreparedLayer& prepared, Poison poison, int64_t expert,
                     std::string_view tactic = {});
  ConstMatrix y() const;

 private:
  const LayerSpec& layer_;
  int64_t m_, gap_;
  DType dtype_;
  int threads_;
  AlignedBuffer x_;
  std::optional<GuardedBuffer> y_;
};

}  // namespace gearshift
