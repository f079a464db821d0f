// What a device is, as a value: enough for preflight, schedule choice and keys, whether or not the device is in this
// machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/digest.hpp"
#include "core/result.hpp"

namespace sl {

struct DeviceInfo {
  std::string name;              ///< "NVIDIA H200"
  std::string backend = "cuda";  ///< cuda | host | rocm
  int capability = 0;            ///< 10 * major + minor: 90 for 9.0; 0 where the notion does not apply (rocm)
  int sm_count = 0;
  std::int64_t l2_bytes = 0;
  int smem_optin = 0;  ///< bytes of shared memory a block may opt in to
  int smem_per_sm = 0;
  int registers_per_sm = 65536;
  int max_threads_per_sm = 2048;
  std::int64_t memory_bytes = 0;
  std::string mig;  ///< MIG profile, empty where MIG is off

  /// Everything that changes which kernel is fastest: name, capability, SM count, L2, opt-in shared memory, MIG.
  Digest decision_digest() const;
};

/// Whether code that needs `min_capability` can run: false on ROCm and below the capability; true on newer GPUs (their
/// driver compiles the PTX). `arch_specific` code (sm_90a) matches its own capability only. The host device emulates a
/// capability.
bool device_supports(int min_capability, const DeviceInfo&, bool arch_specific = false);

/// A device description from configs/devices/*.json (also embedded in the library). Messages name the file, field and
/// value.
Result<DeviceInfo> parse_device_info(std::string_view json, std::string_view origin);
/// The embedded descriptions, by file stem: a100, h100, h200, rtx4090, rtx5090, b200, mi300x.
Result<DeviceInfo> described_device(std::string_view stem);
std::vector<std::string> described_devices();
std::string to_json(const DeviceInfo&);

}  // namespace sl
