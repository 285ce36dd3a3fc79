// Kernels that were wrong elsewhere, as stubs: proof must find them, and only where they are wrong.
#include <gtest/gtest.h>

#include <cstring>

#include "gearshift/measure.h"
#include "kernel/reference/reference.h"
#include "measure/activations.h"
#include "measure/made_up_layer.h"

namespace gearshift {
namespace {

Comparison prove_case(void (*run)(const RunArgs&), const Scheme& scheme, int64_t n, int64_t k, int64_t m) {
  static Kernel kernel = reference_kernel;
  kernel.run = run;
  const auto layer = make_up_layer(scheme, {n}, k, 1);
  EXPECT_TRUE(use_kernel(*layer, kernel, 2).ok());
  return prove(kernel, layer->prepared, m, DType::bf16, 1, 2).comparison;
}

// Right where K is whole steps of 256; the last step of any other K is read as zeros.
void drops_the_last_step(const RunArgs& args) {
  const int64_t k = args.weights->spec->k;
  if (k % 256 == 0) return reference_kernel.run(args);
  std::vector<uint8_t> bytes(static_cast<size_t>(args.x.rows * k * element_bytes(args.x.dtype)));
  const int64_t row_bytes = k * element_bytes(args.x.dtype), whole = k / 256 * 256 * element_bytes(args.x.dtype);
  for (int64_t row = 0; row < args.x.rows; ++row)
    std::memcpy(bytes.data() + row * row_bytes,
                static_cast<const uint8_t*>(args.x.data) + row * args.x.stride * element_bytes(args.x.dtype),
                static_cast<size_t>(whole));
  RunArgs cut = args;
  cut.x.data = bytes.data();
  cut.x.stride = k;
  reference_kernel.run(cut);
}

TEST(ProofCases, Case03KOffTheKernelsStep) {
  for (const int64_t m : {1, 64}) {
    for (const int64_t k : {1664, 1824, 1856})
      EXPECT_FALSE(prove_case(drops_the_last_step, common_scheme(Family::mxfp4), 512, k, m).ok) << k;
    const Comparison good = prove_case(drops_the_last_step, common_scheme(Family::mxfp4), 512, 1792, m);
    EXPECT_TRUE(good.ok) << good.failure;
  }
}

// A 16-bit edge distance that wraps: the band behind the last whole tile of columns is never written.
void forgets_a_band(const RunArgs& args) {
  const int64_t size = element_bytes(args.y.dtype), band = args.y.cols % 64;
  const bool wraps = args.y.cols > 32767 && band != 0 && args.y.rows % 32 != 0;
  if (!wraps) return reference_kernel.run(args);
  std::vector<uint8_t> before(static_cast<size_t>(args.y.rows * args.y.stride * size));
  const auto rows_end = static_cast<size_t>(((args.y.rows - 1) * args.y.stride + args.y.cols) * size);
  std::memcpy(before.data(), args.y.data, rows_end);
  reference_kernel.run(args);
  for (int64_t row = 0; row < args.y.rows; ++row) {
    const int64_t at = (row * args.y.stride + args.y.cols - band) * size;
    std::memcpy(static_cast<uint8_t*>(args.y.data) + at, before.data() + at, static_cast<size_t>(band * size));
  }
}

TEST(ProofCases, Case09UnalignedVocabulary) {
  Scheme scheme = common_scheme(Family::mixed_precision);
  scheme.weight.grouping = {Grouping::Kind::group, 1, 64};
  for (const int64_t m : {9, 16, 31}) {
    const Comparison comparison = prove_case(forgets_a_band, scheme, 73448, 64, m);
    EXPECT_FALSE(comparison.ok) << m;
    EXPECT_NE(comparison.failure.find("column 73408: not written"), std::string::npos) << comparison.failure;
  }
  const Comparison whole = prove_case(forgets_a_band, scheme, 73448, 64, 32);
  EXPECT_TRUE(whole.ok) << whole.failure;
}

// An offset that went negative: a result lands in front of the buffer, which stays otherwise right.
void writes_in_front(const RunArgs& args) {
  reference_kernel.run(args);
  static_cast<uint8_t*>(args.y.data)[-2] = 1;
}

TEST(ProofCases, Case10WritesInFrontOfTheBufferAreSeen) {
  const Comparison comparison = prove_case(writes_in_front, common_scheme(Family::int8_w8a8), 64, 16, 3);
  EXPECT_FALSE(comparison.ok);
  EXPECT_NE(comparison.failure.find("2 bytes before its output"), std::string::npos) << comparison.failure;
}

}  // namespace
}  // namespace gearshift
