#include <sys/mman.h>

#include <cstdlib>
#include <utility>

#include "gearshift/prepare.h"

namespace gearshift {

namespace {

constexpr size_t cache_line_bytes = 64;
constexpr size_t huge_page_bytes = size_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) {
  if (bytes == 0) return;
  // Below two huge pages the rounding would cost more memory than the shorter page table saves time.
  const bool large = bytes >= 2 * huge_page_bytes;
  const size_t alignment = large ? huge_page_bytes : cache_line_bytes;
  if (bytes > SIZE_MAX - alignment) return;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_ = static_cast<uint8_t*>(std::aligned_alloc(alignment, rounded));
  if (data_ == nullptr) return;
  size_ = bytes;
  // Advice only: where huge pages are off the buffer works on small ones.
  if (large) (void)madvise(data_, rounded, MADV_HUGEPAGE);
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  if (this != &other) {
    std::free(data_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace gearshift
