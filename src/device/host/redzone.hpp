// A block of memory between two redzones: a write just outside it leaves a mark (and stops an AddressSanitizer build on
// the spot).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace sl {

class RedzonedBlock {
 public:
  RedzonedBlock() = default;
  /// 256-byte aligned. data() is null where memory ran out.
  explicit RedzonedBlock(std::size_t bytes);
  RedzonedBlock(RedzonedBlock&& other) noexcept;
  RedzonedBlock& operator=(RedzonedBlock&& other) noexcept;
  ~RedzonedBlock();

  void* data() const { return data_; }
  std::size_t size() const { return size_; }

  /// Where a redzone was written: the first such byte's offset from data(), negative before it. nullopt = intact.
  std::optional<std::ptrdiff_t> broken() const;
  /// Makes broken redzones whole again.
  void arm();

 private:
  std::byte* base_ = nullptr;  // of the allocation
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// "written at byte 68, 4 bytes past its end" for an offset that broken() gave.
std::string describe_break(std::ptrdiff_t offset, std::size_t size);

}  // namespace sl
