// Round trips of the packed layout, for every scheme that its kernels take.
#include "kernel/layout/wide_rows16.h"

#include <gtest/gtest.h>

#include "kernel/case_run.h"
#include "kernel/cpu/kernels.h"
#include "kernel/reference/decode.h"
#include "kernel/schemes.h"

namespace gearshift::testing {
namespace {

bool taken(const MadeLayer& layer) {
  for (const Kernel* kernel : {&cpu_bf16_fma, &cpu_int8_w8a8_dot, &cpu_int8_fma, &cpu_fp8_fma, &cpu_fp6_fma}) {
    const auto& families = kernel->families;
    if (std::find(families.begin(), families.end(), layer.spec.family) == families.end()) continue;
    if (!refuses(*kernel, layer.spec, DeviceProfile(), DType::bf16)) return true;
  }
  return false;
}

// Scales of a part as the checkpoint has them: [n or blocks or 1][groups].
int64_t stored_scale_rows(const WeightScheme& weight, int64_t n) {
  if (weight.grouping.kind == Grouping::Kind::tensor) return 1;
  return weight.grouping.kind == Grouping::Kind::block ? up(n, weight.grouping.rows) : n;
}

void expect_codes(const MadeLayer& layer, size_t part, const uint8_t*& code, const std::string& what) {
  const PartWeights& weights = layer.weights.parts[part];
  const StoredWeights stored(layer.weights, part);
  for (int64_t n = 0; n < weights.n; ++n) {
    for (int64_t k = 0; k < layer.spec.k; ++k) {
      if (layer.spec.scheme.quantized) {
        ASSERT_EQ(*code++, stored.code_bits(n, k)) << what << ", row " << n << ", column " << k;
        continue;
      }
      const int64_t size = WideRows16(layer.spec).code_bytes();
      const bool transposed = layer.spec.scheme.weight.storage == Storage::dense_transposed;
      const int64_t index = transposed ? k * weights.n + n : n * layer.spec.k + k;
      ASSERT_EQ(std::memcmp(code, weights.weight.data() + index * size, static_cast<size_t>(size)), 0)
          << what << ", row " << n << ", column " << k;
      code += size;
    }
  }
}

TEST(WideRows16, PacksEveryByteAndUnpacksTheSame) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  int schemes = 0;
  for (const Named& scheme : all_schemes()) {
    bool counted = false;
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{1}, {24, 8}, {48, 40, 5}, {130}}) {
      for (int64_t k : {1, 31, 64, 200}) {
        std::vector<int64_t> parts;
        for (const int64_t n : rows) parts.push_back(up(n, scheme.n_multiple) * scheme.n_multiple);
        const MadeLayer layer(scheme, parts, up(k, scheme.k_multiple) * scheme.k_multiple, random());
        if (!taken(layer)) continue;
        schemes += counted ? 0 : 1;
        counted = true;
        const auto size = static_cast<size_t>(wide_rows16.bytes(layer.spec));
        Guarded first(size), second(size);
        std::memset(second.data(), 0x3C, size);
        wide_rows16.pack(layer.weights, first.data(), 1);
        wide_rows16.pack(layer.weights, second.data(), 3);
        ASSERT_EQ(std::memcmp(first.data(), second.data(), size), 0) << "poison shows; seed " << seed;
        ASSERT_TRUE(first.intact() && second.intact());
        const std::string what = std::string(scheme.name) + ", seed " + std::to_string(seed);
        const WideRows16 at(layer.spec);
        const WeightScheme& weight = layer.spec.scheme.weight;
        const int64_t scale_size = at.groups * at.scale_bytes;
        std::vector<uint8_t> codes(static_cast<size_t>(layer.spec.n * layer.spec.k * at.code_bytes()));
        std::vector<uint8_t> scales(static_cast<size_t>(layer.spec.n * scale_size));
        wide_rows16.unpack(layer.spec, first.data(), codes.data(), scales.data());
        const uint8_t* code = codes.data();
        const uint8_t* scale = scales.data();
        for (size_t part = 0; part < parts.size(); ++part) {
          expect_codes(layer, part, code, what);
          if (HasFatalFailure()) return;
          if (at.scale_rows == 0) continue;
          const auto bytes = static_cast<size_t>(stored_scale_rows(weight, parts[part]) * scale_size);
          ASSERT_EQ(std::memcmp(scale, layer.weights.parts[part].scale.data(), bytes), 0)
              << what << ", scales of part " << part;
          scale += bytes;
        }
      }
    }
  }
  EXPECT_GT(schemes, 8);
}

}  // namespace
}  // namespace gearshift::testing
