// y = x * ((q - z) * s)^T + bias: integer weights of 2 to 8 bits in any storage (compressed-tensors, GPTQ, AWQ,
// ModelOpt, Quark), groups in order or by index. With 16-bit scales (q - z) * s is exact in fp32.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_mixed_precision_emulation", ActivationUse::as_checkpoint);
  kernel.families = {Family::mixed_precision};
  kernel.contract.weight_formats = {Format::int2,  Format::int3,  Format::int4,  Format::int5,  Format::int6,
                                    Format::int7,  Format::int8,  Format::uint2, Format::uint3, Format::uint4,
                                    Format::uint5, Format::uint6, Format::uint7, Format::uint8};
  return kernel;
}

}  // namespace

const Kernel cpu_mixed_precision_emulation = make();

}  // namespace gearshift
