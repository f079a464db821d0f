#include "device/host/redzone.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "device/host/sanitizers.hpp"

namespace sl {
namespace {

constexpr std::size_t zone = 256;       // bytes on either side; also the largest alignment
constexpr std::byte pattern{0xA5};      // no float of any width is likely to be this, nor an index
constexpr std::size_t alignment = 256;  // of the allocation itself

std::size_t footprint(std::size_t bytes) { return (2 * zone + bytes + alignment - 1) / alignment * alignment; }

/// First byte of [begin, begin + zone) that is not the pattern; null where all are.
const std::byte* first_broken(const std::byte* begin) {
  const std::byte* const end = begin + zone;
  const std::byte* const found = std::find_if(begin, end, [](std::byte b) { return b != pattern; });
  return found == end ? nullptr : found;
}

}  // namespace

RedzonedBlock::RedzonedBlock(std::size_t bytes) : size_(bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) return;
  base_ = static_cast<std::byte*>(std::aligned_alloc(alignment, footprint(bytes)));
  if (base_ == nullptr) return;
  data_ = base_ + zone;
  arm();
}

RedzonedBlock::RedzonedBlock(RedzonedBlock&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

RedzonedBlock& RedzonedBlock::operator=(RedzonedBlock&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

RedzonedBlock::~RedzonedBlock() {
  if (base_ == nullptr) return;
  asan::unpoison(base_, footprint(size_));
  std::free(base_);
}

void RedzonedBlock::arm() {
  if (base_ == nullptr) return;
  asan::unpoison(base_, footprint(size_));
  std::memset(base_, static_cast<int>(pattern), zone);
  std::memset(data_ + size_, static_cast<int>(pattern), zone);
  asan::poison(base_, zone);
  asan::poison(data_ + size_, footprint(size_) - zone - size_);
}

std::optional<std::ptrdiff_t> RedzonedBlock::broken() const {
  // Under AddressSanitizer a write there ended the process, and reading it would too.
  if (base_ == nullptr || asan::enabled) return std::nullopt;
  if (const std::byte* at = first_broken(base_)) return at - data_;
  if (const std::byte* at = first_broken(data_ + size_)) return at - data_;
  return std::nullopt;
}

std::string describe_break(std::ptrdiff_t offset, std::size_t size) {
  const std::string distance = offset < 0
                                   ? std::to_string(-offset) + " bytes before its start"
                                   : std::to_string(offset - static_cast<std::ptrdiff_t>(size)) + " bytes past its end";
  return "written at byte " + std::to_string(offset) + ", " + distance;
}

}  // namespace sl
