// The door to the device, and the quantizers behind it.
#include <gtest/gtest.h>

#include <cmath>

#include "device/cublaslt.h"
#include "device/cuda.h"
#include "device_case.h"
#include "format/bf16.h"
#include "format/e2m1.h"
#include "format/e2m3.h"
#include "format/e3m2.h"
#include "format/e4m3.h"
#include "format/e5m2.h"
#include "format/e8m0.h"
#include "kernel/cuda/operand.h"
#include "kernel/reference/activation.h"
#include "kernel/schemes.h"

namespace gearshift::testing {
namespace {

TEST(CudaDevice, SaysWhatItIs) {
  ASSERT_FALSE(cuda_devices().empty()) << cuda::no_device("cuda").message();
  const DeviceProfile& device = gpu();
  EXPECT_TRUE(device.present);
  EXPECT_EQ(device.platform, Platform::cuda);
  EXPECT_EQ(device.arch.substr(0, 3), "sm_");
  EXPECT_GT(device.cores, 0);
  EXPECT_GT(device.memory_bytes, uint64_t{1} << 30);
  EXPECT_FALSE(device.driver.empty());
  const auto& targets = cuda::code_targets();
  EXPECT_TRUE(
      std::any_of(targets.begin(), targets.end(), [&](auto target) { return target_covers(target, device.arch); }))
      << targets.front() << " and others on " << device.arch;
  EXPECT_TRUE(cuda::has_cublaslt());
  const cuda::Clocks clocks = cuda::clocks(device.index);
  std::cout << device.name << " " << device.arch << ", driver " << device.driver << ", cuBLASLt "
            << cuda::cublaslt_version() << ", " << clocks.multiprocessor_mhz << " and " << clocks.memory_mhz
            << " MHz\n";
  const auto host = host_cpu();
  ASSERT_TRUE(host.ok());
  for (const char* name : {"cuda", "cuda:0"}) {
    const auto found = find_device(name, *host);
    ASSERT_TRUE(found.ok()) << found.error().message();
    EXPECT_EQ(found->name, device.name);
  }
  EXPECT_FALSE(find_device("cuda:99", *host).ok());
}

TEST(DeviceBufferTest, KeepsWhatIsWritten) {
  ASSERT_TRUE(use_device(gpu()).ok());
  std::vector<uint8_t> bytes(100003), back(bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7);
  auto buffer = DeviceBuffer::allocate(bytes.size());
  ASSERT_TRUE(buffer.ok());
  ASSERT_TRUE(buffer->write(bytes.data(), bytes.size()).ok());
  const DeviceBuffer moved = std::move(*buffer);
  ASSERT_TRUE(moved.read(back.data(), back.size()).ok());
  EXPECT_EQ(bytes, back);
  const auto impossible = DeviceBuffer::allocate(size_t{1} << 50);
  ASSERT_FALSE(impossible.ok());
  EXPECT_NE(impossible.error().message().find("memory"), std::string::npos);
  EXPECT_TRUE(DeviceBuffer::allocate(16).ok()) << "a refused allocation breaks the next";
}

// Values and factors of x as kernels see it, against the checkpoint's recipe on the host: equal to the bit.
void compare_operand(const MadeLayer& layer, const char* scheme, GuardedMatrix& x, int64_t rows) {
  const int64_t k = layer.spec.k, columns = up(k, 128) * 128;
  const cuda::OperandNeeds needs{ActivationUse::as_checkpoint, DType::bf16, columns};
  auto scratch = DeviceBuffer::allocate(static_cast<size_t>(cuda::operand_bytes(needs, rows)));
  const size_t bytes = static_cast<size_t>(rows * x.matrix().stride) * 2;
  auto there = DeviceBuffer::allocate(bytes);
  ASSERT_TRUE(scratch.ok() && there.ok());
  ASSERT_TRUE(there->write(x.matrix().data, bytes).ok());
  RunArgs args;
  args.weights = &layer.weights;
  args.x = x.const_matrix();
  args.x.data = there->data();
  cuda::Operand operand;
  ASSERT_TRUE(cuda::make_operand(args, needs, 0, 0, rows, nullptr, scratch->data(), operand));
  ASSERT_TRUE(cuda::synchronize().ok());
  ASSERT_EQ(operand.data, scratch->data());
  std::vector<uint8_t> back(scratch->size());
  ASSERT_TRUE(scratch->read(back.data(), back.size()).ok());
  const auto* found = reinterpret_cast<const uint16_t*>(back.data());
  const float* token =
      operand.token_factor == nullptr
          ? nullptr
          : reinterpret_cast<const float*>(back.data() +
                                           (reinterpret_cast<const uint8_t*>(operand.token_factor) - scratch->data()));
  const PartWeights& part = layer.weights.parts[0];
  const auto use = ActivationUse::as_checkpoint;
  std::vector<float> values(static_cast<size_t>(k)), scales(static_cast<size_t>(k));
  const ConstMatrix host = x.const_matrix();
  const float tensor = dynamic_tensor_scale(layer.spec.scheme, host, part, use, values.data());
  const ActivationGroups groups = activation_groups(layer.spec.scheme, k, use);
  for (int64_t m = 0; m < rows; ++m) {
    load_row(host, m, 0, k, part, values.data());
    const double factor = quantize_row(layer.spec.scheme, part, use, tensor, values.data(), k, scales.data());
    const float seen = token != nullptr ? token[m] : static_cast<float>(operand.factor);
    ASSERT_EQ(seen, static_cast<float>(factor)) << scheme << " row " << m;
    for (int64_t i = 0; i < k; ++i) {
      const float wanted = groups.count > 1 || scales[0] != 1
                               ? values[static_cast<size_t>(i)] * scales[static_cast<size_t>(i / groups.group)]
                               : values[static_cast<size_t>(i)];
      const float got = format::decode_bf16(found[m * columns + i]),
                  rounded = format::decode_bf16(format::encode_bf16(wanted));
      if (std::isnan(rounded)) {
        ASSERT_TRUE(std::isnan(got)) << scheme << " row " << m << " column " << i;
        continue;
      }
      ASSERT_EQ(got, rounded) << scheme << " row " << m << " column " << i;
    }
    for (int64_t i = k; i < columns; ++i)
      ASSERT_EQ(found[m * columns + i], 0) << scheme << " row " << m << " column " << i;
  }
}

float value_of_code(const ActivationScheme& a, const uint8_t* row, int64_t i, int32_t zero_point) {
  if (a.format == Format::e2m1) return format::decode_e2m1(row[i / 2] >> (i % 2 * 4) & 15);
  if (a.format == Format::e2m3) return format::decode_e2m3(row[i]);
  if (a.format == Format::e3m2) return format::decode_e3m2(row[i]);
  if (a.format == Format::e5m2) return format::decode_e5m2(row[i]);
  if (a.format == Format::e4m3) return format::decode_e4m3(row[i]);
  return static_cast<float>(static_cast<int8_t>(row[i]) - zero_point);
}

// The same as codes and scales, each where kernels look for it.
void compare_codes(const MadeLayer& layer, const char* scheme, GuardedMatrix& x, int64_t rows) {
  const ActivationScheme& a = *layer.spec.scheme.activation;
  const auto use = ActivationUse::as_checkpoint;
  const int64_t k = layer.spec.k, columns = up(k, 16) * 16;
  const ActivationGroups groups = activation_groups(layer.spec.scheme, k, use);
  const bool grouped = a.granularity == Granularity::token_group;
  const bool bytes_as_scales = grouped && a.rule != ScaleRule::amax && a.rule != ScaleRule::amax_pow2;
  const bool tiles = bytes_as_scales || a.format == Format::e2m1;
  cuda::OperandNeeds needs{use, DType::u8, columns};
  if (grouped) {
    needs.group_scales = tiles ? cuda::GroupScales::tiles_128x4 : cuda::GroupScales::by_group;
    needs.group = groups.group;
  }
  needs.row_sums = a.format == Format::int8;
  auto scratch = DeviceBuffer::allocate(static_cast<size_t>(cuda::operand_bytes(needs, rows)));
  const size_t bytes = static_cast<size_t>(rows * x.matrix().stride) * 2;
  auto there = DeviceBuffer::allocate(bytes);
  ASSERT_TRUE(scratch.ok() && there.ok());
  ASSERT_TRUE(there->write(x.matrix().data, bytes).ok());
  RunArgs args;
  args.weights = &layer.weights;
  args.x = x.const_matrix();
  args.x.data = there->data();
  cuda::Operand operand;
  ASSERT_TRUE(cuda::make_operand(args, needs, 0, 0, rows, nullptr, scratch->data(), operand));
  ASSERT_TRUE(cuda::synchronize().ok());
  std::vector<uint8_t> back(scratch->size());
  ASSERT_TRUE(scratch->read(back.data(), back.size()).ok());
  const auto here = [&](const auto* pointer) {
    return pointer == nullptr ? nullptr
                              : reinterpret_cast<decltype(pointer)>(
                                    back.data() + (reinterpret_cast<const uint8_t*>(pointer) - scratch->data()));
  };
  const float *token = here(operand.token_factor), *group_scales = here(operand.group_scales);
  const int32_t *sums = here(operand.row_sums), *zeros = here(operand.zero_points);
  const uint8_t* scale_bytes = here(operand.scale_bytes);
  const int64_t row_bytes = a.format == Format::e2m1 ? columns / 2 : columns;
  std::vector<float> values(static_cast<size_t>(k)), scales(static_cast<size_t>(k));
  const ConstMatrix host = x.const_matrix();
  const PartWeights& part = layer.weights.parts[0];
  const float tensor = dynamic_tensor_scale(layer.spec.scheme, host, part, use, values.data());
  for (int64_t m = 0; m < rows; ++m) {
    load_row(host, m, 0, k, part, values.data());
    const double factor = quantize_row(layer.spec.scheme, part, use, tensor, values.data(), k, scales.data());
    if (token != nullptr) {
      ASSERT_EQ(token[m], static_cast<float>(factor)) << scheme << " row " << m;
    }
    const uint8_t* row = back.data() + m * row_bytes;
    int32_t sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      sum += static_cast<int8_t>(row[a.format == Format::e2m1 ? 0 : i]);
      const float found = value_of_code(a, row, i, zeros != nullptr ? zeros[m] : 0), wanted = values[size_t(i)];
      if (std::isnan(wanted) && std::isnan(found)) continue;
      ASSERT_EQ(found, wanted) << scheme << " row " << m << " column " << i;
    }
    for (int64_t i = k; i < columns; ++i)
      ASSERT_EQ(a.format == Format::e2m1 ? row[i / 2] >> (i % 2 * 4) & 15 : row[i], 0) << scheme;
    if (sums != nullptr) {
      ASSERT_EQ(sums[m], sum) << scheme << " row " << m;
    }
    for (int64_t g = 0; g < groups.count && grouped; ++g) {
      const int64_t quads = up(groups.count, 4);
      float found;
      if (tiles) {
        const uint8_t byte = scale_bytes[(m / 128 * quads + g / 4) * 512 + m % 32 * 16 + m % 128 / 32 * 4 + g % 4];
        found = bytes_as_scales ? format::decode_e8m0(byte) : format::decode_e4m3(byte);
      } else {
        found = group_scales[m * operand.group_scale_row + g * operand.group_scale_step];
      }
      ASSERT_EQ(found, scales[static_cast<size_t>(g)]) << scheme << " row " << m << " group " << g;
    }
  }
}

// Rows that start on 16 bytes and rows that do not; several blocks for a row, one, and more columns than its registers.
TEST(Quantizers, AreThoseOfTheHost) {
  std::mt19937_64 random(std::random_device{}());
  struct Shape {
    int64_t rows, k, gap;
  };
  int compared = 0;
  for (const Named& scheme : all_schemes()) {
    if (!scheme.scheme.activation || scheme.scheme.pre_scale) continue;
    for (const Shape& shape : {Shape{300, 1000, 5}, Shape{300, 1024, 8}, Shape{5, 9216, 8}, Shape{270, 9216, 0}}) {
      const int64_t k = up(shape.k, scheme.k_multiple) * scheme.k_multiple;
      const MadeLayer layer(scheme, {up(32, scheme.n_multiple) * scheme.n_multiple}, k, random());
      GuardedMatrix x(DType::bf16, shape.rows, k, shape.gap);
      fill_activations(x, shape.rows, k, random);
      x.set(4, 1, NAN);
      compare_operand(layer, scheme.name, x, shape.rows);
      if (HasFatalFailure()) return;
      compare_codes(layer, scheme.name, x, shape.rows);
      if (HasFatalFailure()) return;
      ++compared;
    }
  }
  EXPECT_GT(compared, 48);
}

// Shapes for which a device without the instructions says no, and not later.
TEST(CublasLt, KnowsWhatTheDeviceMultiplies) {
  cuda::Product p;
  p.n = p.k = p.m = 4096;
  p.a_stride = p.b_stride = p.d_stride = 4096;
  auto memory = DeviceBuffer::allocate(256);
  ASSERT_TRUE(memory.ok());
  p.a = p.b = p.a_scales = p.b_scales = memory->data();
  p.d = memory->data();
  p.workspace_bytes = cuda::cublaslt_workspace_bytes;
  EXPECT_TRUE(cuda::has_algorithm(p));
  p.operand = DType::f8_e4m3;
  EXPECT_EQ(cuda::has_algorithm(p), gpu().capability >= 89);
  p.scales = cuda::ProductScales::outer;
  EXPECT_EQ(cuda::has_algorithm(p), gpu().capability == 90);
  p.scales = cuda::ProductScales::block128;
  EXPECT_EQ(cuda::has_algorithm(p), gpu().capability == 90);
  p.scales = cuda::ProductScales::vec32;
  EXPECT_EQ(cuda::has_algorithm(p), gpu().capability >= 100);
  p.operand = DType::f4;
  p.scales = cuda::ProductScales::vec16;
  EXPECT_EQ(cuda::has_algorithm(p), gpu().capability >= 100);
  p.operand = DType::i8;
  p.out = DType::i32;
  p.scales = cuda::ProductScales::none;
  EXPECT_TRUE(cuda::has_algorithm(p));
}

}  // namespace
}  // namespace gearshift::testing
