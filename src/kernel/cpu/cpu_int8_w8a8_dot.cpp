// y[m,n] = sx[m] * sw[n] * sum over k of (qx[m,k] - zx[m]) * qw[n,k], plus bias[n]
//
// int8 activations by the checkpoint's recipe, made on the way into tiles; exact int32 sums over all of K, scaled once.
#include "kernel/cpu/kernels.h"
#include "kernel/cpu/stage/wide_engine.h"

namespace gearshift {

namespace {

Kernel make() {
  Kernel kernel = make_wide("cpu_int8_w8a8_dot");
  kernel.families = {Family::int8_w8a8};
  kernel.accumulator = "int32";
  kernel.contract.weight_formats = {Format::int8};
  kernel.contract.groupings = {Grouping::Kind::tensor, Grouping::Kind::row, Grouping::Kind::whole_row};
  kernel.contract.activation_formats = {Format::int8};
  kernel.contract.k.max = 65536;  // 255 * 128 * K is below 2^31
  kernel.formula = "y = (int8(x) . W) * sx * sw + bias, int32 sums";
  return kernel;
}

}  // namespace

const Kernel cpu_int8_w8a8_dot = make();

}  // namespace gearshift
