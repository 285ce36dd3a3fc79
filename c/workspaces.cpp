#include "workspaces.h"

#include "base/text.h"
#include "base/try.h"

namespace gearshift::c {

Workspaces& Workspaces::shared() {
  // Never destroyed: calls of other threads may outlive static objects.
  static auto* workspaces = new Workspaces;
  return *workspaces;
}

Workspaces::OnHost::~OnHost() {
  if (from_ == nullptr || buffer_.size() == 0) return;
  const std::lock_guard lock(from_->mutex_);
  from_->idle_.push_back(std::move(buffer_));
}

Result<Workspaces::OnHost> Workspaces::on_host(int64_t bytes) {
  AlignedBuffer buffer;
  if (bytes <= 0) return OnHost(*this, std::move(buffer));
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      buffer = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (buffer.size() < static_cast<size_t>(bytes)) {
    buffer = AlignedBuffer();  // freed before more is asked for
    buffer = AlignedBuffer(static_cast<size_t>(bytes));
  }
  if (buffer.size() < static_cast<size_t>(bytes)) {
    return ErrorInfo{ErrorCode::runtime,     "workspace",
                     "not enough memory",    format_bytes(static_cast<uint64_t>(bytes)),
                     "give smaller batches", {}};
  }
  return OnHost(*this, std::move(buffer));
}

Result<std::span<uint8_t>> Workspaces::on_device(const DeviceProfile& device, void* stream, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  DeviceBuffer& buffer = by_stream_[{device.index, stream}];
  if (buffer.size() < static_cast<size_t>(bytes)) {
    buffer = DeviceBuffer();  // waits for the device before memory in use goes
    GEARSHIFT_TRY(buffer, DeviceBuffer::allocate(static_cast<size_t>(bytes)));
  }
  return buffer.span();
}

}  // namespace gearshift::c
