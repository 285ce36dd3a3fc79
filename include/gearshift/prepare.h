// Plan + checkpoint bytes -> a layer that is ready to run. The watershed: here values are checked, weights packed and
// memory accounted; behind it nothing is validated or allocated any more.
#pragma once

#include "gearshift/checkpoint.h"
#include "gearshift/plan.h"

namespace gearshift {

// Memory that starts on a 64-byte boundary (2 MB pages where large and allowed).
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(size_t bytes);  // size() is 0 when there is not enough memory
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<uint8_t> span() { return {data_, size_}; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Binds the stored tensors of one linear layer (or of expert `expert`) to mapped bytes, reads its scalars and checks
// their values. The views live as long as the checkpoint. Error damaged_checkpoint names the tensor: missing, NaN,
// infinite or negative scales, zero tensor-wide scales, group indices out of range. `notes`, where given, gains a sentence
// for each stored value that contradicts the scheme and is not used.
Result<LayerWeights> bind_weights(const Checkpoint& checkpoint, const LayerSpec& layer, int64_t expert = 0,
                                  std::vector<std::string>* notes = nullptr);

// Whether a layer with `act_order` needs it: false where each stored index puts column k into group k / group width, or
// was never filled in. Reads the indices alone. Errors: those of bind_weights about them.
Result<bool> is_out_of_order(const Checkpoint& checkpoint, const LayerSpec& layer);

// One layer, ready: weights bound and packed in the layouts its plan needs. Movable; the LayerPlan and the Checkpoint
// must outlive it. Const use from many threads is safe as long as each brings its own workspace.
struct PreparedLayer {
  const LayerPlan* plan = nullptr;
  std::vector<LayerWeights> weights;                               // one, or one per expert
  std::vector<std::string> notes;                                  // of bind_weights, each once
  std::vector<std::pair<const Layout*, AlignedBuffer>> packed;     // experts lie one after the other
  std::vector<std::pair<const Layout*, DeviceBuffer>> on_device;   // the same for layouts of CUDA kernels
  int64_t expert_stride(const Layout& layout) const;               // bytes of one expert in that buffer
  // nullptr for `checkpoint`; memory of the kernel's platform.
  const uint8_t* packed_for(const Kernel& kernel, int64_t expert = 0) const;
};
Result<PreparedLayer> prepare(const Checkpoint& checkpoint, const LayerPlan& plan, int threads);
// Packs one more layout beside those of the plan (proof of a kernel that the plan did not select); nothing to do where it
// is there or is `checkpoint`. Layouts of CUDA kernels are packed on the host and copied to the device in use. Error runtime:
// out of memory, or what the device reports.
Result<void> add_layout(PreparedLayer& layer, const Layout& layout, int threads);

// The workspace that `run` needs for batches up to m.
int64_t workspace_bytes(const LayerPlan& plan, int64_t m, int threads);

}  // namespace gearshift
