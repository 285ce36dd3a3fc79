// Second packed layouts, where the memory budget pays for them.
#pragma once

#include "plan/warnings.h"

namespace gearshift {

// What a row would get with every layout that its kernels read, beside what it has with one.
struct LayoutOffer {
  size_t row = 0;
  uint64_t extra_bytes = 0;  // of all experts
  size_t batch_sizes = 0;    // of the policy that another kernel would serve
};
// The rows whose offers the budget pays for: those first that move most batch sizes a byte, in the order of the plan
// where equal. An offer that does not fit is passed over, smaller ones behind it may still fit.
std::vector<size_t> rows_paid_for(std::vector<LayoutOffer> offers, uint64_t budget);

// What the packed layouts of a decision take beside the first of them, of all experts.
uint64_t second_copy_bytes(const LayerSpec& shard, const Decision& decision);

// How many batch sizes of `batch` get another kernel.
size_t moved_batch_sizes(const Decision& from, const Decision& to, const std::vector<int64_t>& batch);

}  // namespace gearshift
