// y = x * (e4m3(W) * scale)^T + bias: FP8 weights with activations as they come, whatever shares a scale. Also what an
// FP8 W8A8 checkpoint runs through when its activations are not to be rounded.
#include "kernel/cpu/emulation.h"
#include "kernel/cpu/kernels.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_emulation("cpu_w8a16_fp8_emulation", ActivationUse::float16);
  kernel.families = {Family::w8a16_fp8, Family::fp8_w8a8, Family::fp8_block_w8a8};
  kernel.contract.weight_formats = {Format::e4m3, Format::e5m2};
  kernel.contract.storages = {Storage::dense};
  return kernel;
}

}  // namespace

const Kernel cpu_w8a16_fp8_emulation = make();

}  // namespace gearshift
