#include "measure/trial.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "measure/device_run.h"

namespace gearshift {

namespace {

constexpr uint8_t canary = 0xC3;
// A multiple of any page size in use; address space only.
constexpr size_t guard_bytes = 65536;

bool is_filled(const uint8_t* bytes, size_t count, uint8_t value) {
  return std::all_of(bytes, bytes + count, [value](uint8_t byte) { return byte == value; });
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t bytes, Poison poison) : bytes_(bytes) {
  constexpr size_t most = std::numeric_limits<size_t>::max() / 4;
  if (bytes > most) return;
  // [guard][canary and what fills its page][data][canary, to 64 bytes][guard]
  const size_t behind = (bytes + canary_bytes + 63) / 64 * 64;
  const size_t inside = (canary_bytes + behind + guard_bytes - 1) / guard_bytes * guard_bytes;
  mapped_bytes_ = inside + 2 * guard_bytes;
  mapped_ = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped_ == MAP_FAILED) {
    mapped_ = nullptr;
    return;
  }
  auto* usable = static_cast<uint8_t*>(mapped_) + guard_bytes;
  if (mprotect(usable, inside, PROT_READ | PROT_WRITE) != 0) return;
  data_ = usable + inside - behind;
  std::memset(data_ - canary_bytes, canary, canary_bytes + behind);
  std::memset(data_, byte_of(poison), bytes_);
}

GuardedBuffer::~GuardedBuffer() {
  if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
}

std::string GuardedBuffer::damage() const {
  for (size_t i = 0; i < canary_bytes; ++i) {
    if (data_[-1 - static_cast<std::ptrdiff_t>(i)] != canary) return fmt::format("{} bytes before", i + 1);
    if (data_[bytes_ + i] != canary) return fmt::format("{} bytes behind", i + 1);
  }
  return "";
}

Trial::Trial(const LayerWeights& weights, int64_t m, DType dtype, uint64_t seed, int threads, int64_t gap)
    : layer_(*weights.spec), m_(m), gap_(gap), dtype_(dtype), threads_(threads) {
  const int64_t stride = layer_.k + gap;
  x_ = AlignedBuffer(static_cast<size_t>(std::max<int64_t>(1, m * stride * element_bytes(dtype))));
  if (x_.size() == 0) return;
  std::memset(x_.data(), byte_of(Poison::nan), x_.size());
  make_activations({x_.data(), dtype, m, layer_.k, stride}, seed, threads, activation_limit(weights));
}

ConstMatrix Trial::x() const { return {x_.data(), dtype_, m_, layer_.k, layer_.k + gap_}; }

ConstMatrix Trial::y() const { return {y_->data(), dtype_, m_, layer_.n, layer_.n + gap_}; }

std::string Trial::launch(const Kernel& kernel, const PreparedLayer& prepared, Poison poison, int64_t expert,
                          std::string_view tactic) {
  const int64_t stride = layer_.n + gap_, size = element_bytes(dtype_);
  y_.emplace(static_cast<size_t>(m_ * stride * size), poison);
  const int64_t scratch = kernel.workspace_bytes == nullptr ? 0 : kernel.workspace_bytes(layer_, m_, threads_);
  GuardedBuffer workspace(static_cast<size_t>(scratch), poison);
  if (x_.size() == 0 || !y_->allocated() || !workspace.allocated()) return "not enough memory for the proof";

  const Matrix out{y_->data(), dtype_, m_, layer_.n, stride};
  if (kernel.platform == Platform::cpu) {
    run_kernel(kernel, prepared, x(), out, workspace.span(), threads_, expert, nullptr, tactic);
  } else {
    const DeviceCall call{kernel,           prepared,          x(),      x_.span(), out,   y_->whole(),
                          workspace.span(), workspace.whole(), threads_, expert,    tactic};
    if (const auto ran = run_on_device(call); !ran.ok()) return ran.error().message();
  }

  if (const std::string where = y_->damage(); !where.empty()) return fmt::format("wrote {} its output", where);
  if (const std::string where = workspace.damage(); !where.empty()) return fmt::format("wrote {} its workspace", where);
  const uint8_t filling = byte_of(poison);
  for (int64_t row = 0; row < m_; ++row) {
    const uint8_t* bytes = y_->data() + row * stride * size;
    if (!is_filled(bytes + layer_.n * size, static_cast<size_t>(gap_ * size), filling)) {
      return fmt::format("wrote between row {} and the next", row);
    }
  }
  // Only the NaN pattern cannot be a result.
  return poison == Poison::nan ? find_poison(y()) : "";
}

}  // namespace gearshift
