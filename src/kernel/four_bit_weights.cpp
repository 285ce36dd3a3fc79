#include "kernel/four_bit_weights.h"

namespace gearshift {

namespace {

void take_e2m1(Contract& contract, int64_t group, DType scale) {
  contract.weight_formats = {Format::e2m1};
  contract.storages = {Storage::nibbles};
  contract.groupings = {Grouping::Kind::group};
  contract.groups = {group};
  contract.scale_dtypes = {scale};
}

}  // namespace

void take_nvfp4_weights(Contract& contract) { take_e2m1(contract, 16, DType::f8_e4m3); }
void take_mxfp4_weights(Contract& contract) { take_e2m1(contract, 32, DType::f8_e8m0); }

void take_int4_weights(Contract& contract) {
  contract.weight_formats = {Format::int4, Format::uint4};
  contract.groupings = {Grouping::Kind::group, Grouping::Kind::row, Grouping::Kind::whole_row};
  contract.groups = {32, 64, 128, 256, 512, 1024};
}

}  // namespace gearshift
