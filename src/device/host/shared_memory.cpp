#include "device/host/shared_memory.hpp"

#include <cstring>

namespace sl {
namespace {

constexpr long long static_limit = 48 * 1024;  // what ptxas allows a kernel without the dynamic opt-in

std::string quoted(const SlHostArray* site, std::size_t bytes) {
  const std::string name = site == nullptr ? "dynamic shared memory" : "shared array '" + std::string(site->name) + "'";
  return name + " (" + std::to_string(bytes) + " bytes)";
}

}  // namespace

void SharedMemory::reset() { arrays_.clear(); }

void SharedMemory::begin_block(int dynamic_bytes) {
  dynamic_bytes_ = dynamic_bytes;
  for (Array& array : arrays_) array.touched = false;
}

void* SharedMemory::array(const SlHostArray* site) {
  Array* found = nullptr;
  for (Array& array : arrays_)
    if (array.site == site) found = &array;
  if (found == nullptr) found = &arrays_.emplace_back(Array{site, {}, false});
  if (!found->touched) {
    const auto bytes = static_cast<std::size_t>(site == nullptr ? dynamic_bytes_ : site->bytes);
    if (found->block.data() == nullptr || found->block.size() != bytes) found->block = RedzonedBlock(bytes);
    if (found->block.data() == nullptr) return nullptr;
    std::memset(found->block.data(), 0xff, bytes);  // NaN in every float type: a read before a write shows
    found->touched = true;
  }
  return found->block.data();
}

Status SharedMemory::end_block(int smem_optin) {
  long long static_bytes = 0;
  for (Array& array : arrays_) {
    if (!array.touched) continue;
    if (array.site != nullptr) static_bytes += (array.site->bytes + 15) / 16 * 16;
    if (const auto offset = array.block.broken()) {
      array.block.arm();
      return Error{Code::wrong_result,
                   quoted(array.site, array.block.size()) + " was " + describe_break(*offset, array.block.size())};
    }
  }
  if (static_bytes > static_limit) {
    return Error{Code::device, "static shared memory is " + std::to_string(static_bytes) + " bytes, and a GPU allows " +
                                   std::to_string(static_limit) + "; take dynamic shared memory beyond that"};
  }
  if (static_bytes + dynamic_bytes_ > smem_optin) {
    return Error{Code::device, "shared memory is " + std::to_string(static_bytes) + " bytes static and " +
                                   std::to_string(dynamic_bytes_) + " dynamic; together at most " +
                                   std::to_string(smem_optin)};
  }
  return {};
}

}  // namespace sl
