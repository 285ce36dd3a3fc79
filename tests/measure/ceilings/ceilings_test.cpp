#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "device/cpu_features.h"
#include "measure/ceilings/floor.h"
#include "measure/ceilings/meter.h"

namespace gearshift {
namespace {

std::vector<Isa> levels_here() {
  std::vector<Isa> levels;
  for (Isa isa : {Isa::portable, Isa::avx2, Isa::avx512, Isa::avx512_vnni, Isa::avx512_bf16, Isa::amx, Isa::neon}) {
    if (isa_covers(detect_isa(), isa)) levels.push_back(isa);
  }
  return levels;
}

TEST(Reads, EveryShapeReadsEveryByteOnce) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (const size_t count : {size_t{4096}, size_t{4096} * 7}) {
    AlignedBuffer buffer(count);
    uint64_t wanted = 0;
    for (size_t i = 0; i < count; i += 8) {
      const uint64_t word = random();
      std::memcpy(buffer.data() + i, &word, 8);
      wanted += word;
    }
    for (const Isa isa : levels_here()) {
      for (const ReadShape& shape : read_shapes(isa)) {
        EXPECT_EQ(shape.read(buffer.data(), count), wanted)
            << name(isa) << ", " << shape.streams << " streams, prefetch " << shape.prefetch_bytes << ", seed " << seed;
      }
    }
  }
}

TEST(Peaks, EveryLevelHasAllThreeWithItsOwnInstruction) {
  for (const Isa isa : levels_here()) {
    const auto peaks = peaks_for(isa);
    EXPECT_EQ(peaks[0].name, "fp32");
    EXPECT_EQ(peaks[1].name, "bf16");
    EXPECT_EQ(peaks[2].name, "int8");
    for (const Peak& peak : peaks) peak.run(100);  // an instruction that this processor lacks would end the test
  }
  EXPECT_EQ(peaks_for(Isa::avx2)[2].instruction, "vpmaddubsw + vpmaddwd + vpaddd ymm");
  EXPECT_EQ(peaks_for(Isa::avx512)[1].instruction, "vfmadd231ps zmm");
  EXPECT_EQ(peaks_for(Isa::avx512_vnni)[2].instruction, "vpdpbusd zmm");
  EXPECT_EQ(peaks_for(Isa::avx512_bf16)[1].instruction, "vdpbf16ps zmm");
  EXPECT_EQ(peaks_for(Isa::amx)[2].instruction, "tdpbusd");
}

TEST(CeilingMeter, MedianOfItsSamples) {
  auto meter = CeilingMeter::make(detect_isa(), 1, size_t{8} << 20);
  ASSERT_TRUE(meter.ok());
  meter->sample();
  meter->sample();
  const auto ceilings = meter->ceilings();
  ASSERT_EQ(ceilings.size(), 4U);
  EXPECT_EQ(ceilings[0].name, "dram");
  EXPECT_EQ(ceilings[0].samples, 2);
  EXPECT_EQ(ceilings[3].samples, 6);
  for (const Ceiling& ceiling : ceilings) {
    EXPECT_GT(ceiling.value, 0) << ceiling.name;
    EXPECT_LE(ceiling.p10, ceiling.value);
    EXPECT_GE(ceiling.p90, ceiling.value);
    EXPECT_FALSE(ceiling.instruction.empty());
  }
}

TEST(CeilingMeter, NotEnoughMemoryIsAnError) {
  const auto meter = CeilingMeter::make(Isa::portable, 1, size_t{1} << 60);
  ASSERT_FALSE(meter.ok());
  EXPECT_EQ(meter.error().code, ErrorCode::runtime);
  EXPECT_NE(meter.error().message().find("--memory-limit"), std::string::npos);
}

TEST(Floor, TheSlowerOfReadingAndComputing) {
  const std::vector<Ceiling> ceilings = {{"dram", "GB/s", "", 50, 50, 50, 1},
                                         {"fp32", "GFLOP/s", "", 100, 100, 100, 1},
                                         {"bf16", "GFLOP/s", "", 200, 200, 200, 1},
                                         {"int8", "GOP/s", "", 400, 400, 400, 1}};
  LayerSpec layer;
  layer.n = 1000;
  layer.k = 2000;
  layer.weight_bytes = 1'000'000;
  EXPECT_DOUBLE_EQ(floor_of(ceilings, layer, "int8", 1).us, 20);  // 1 MB at 50 GB/s
  EXPECT_EQ(floor_of(ceilings, layer, "int8", 1).ceiling, "dram");
  EXPECT_DOUBLE_EQ(floor_of(ceilings, layer, "nvfp4", 100).us, 1000);  // 0.4 GOP at 400 GOP/s
  EXPECT_EQ(floor_of(ceilings, layer, "nvfp4", 100).ceiling, "int8");
  EXPECT_DOUBLE_EQ(floor_of(ceilings, layer, "bf16", 100).us, 2000);
  EXPECT_DOUBLE_EQ(floor_of(ceilings, layer, "fp8", 100).us, 2000);
  EXPECT_DOUBLE_EQ(floor_of(ceilings, layer, "fp16", 100).us, 4000);
  EXPECT_EQ(floor_of({}, layer, "fp16", 100).us, 0);
}

// What a device's own kernels are held against: x and y are read and written, too, after a start.
TEST(Floor, OfADeviceBeginsWithAStart) {
  const std::vector<Ceiling> ceilings = {{"read start", "us", "", 2, 2, 2, 1},
                                         {"dram", "GB/s", "", 1000, 1000, 1000, 1},
                                         {"bf16", "GFLOP/s", "", 1000, 1000, 1000, 1},
                                         {"int8", "GOP/s", "", 2000, 2000, 2000, 1}};
  LayerSpec layer;
  layer.n = 1000;
  layer.k = 2000;
  layer.weight_bytes = 6'994'000;  // with 6000 of x and y: 7 us
  EXPECT_DOUBLE_EQ(floor_of(ceilings, layer, "bf16", 1).us, 9);
  EXPECT_DOUBLE_EQ(floor_of(ceilings, layer, "fp16", 10).us, 40);  // 0.04 GFLOP
  EXPECT_EQ(floor_of(ceilings, layer, "fp16", 10).ceiling, "bf16");
  EXPECT_DOUBLE_EQ(floor_of(ceilings, layer, "int8", 10).us, 20);
}

}  // namespace
}  // namespace gearshift
