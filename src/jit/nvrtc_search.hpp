// Where libnvrtc is, found without opening it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/environment.hpp"

namespace sl {

/// What a search found: the first library of the first place that has one, and every place that was looked at.
struct NvrtcLocation {
  std::string path;                   ///< resolved; empty where there is none
  std::vector<std::string> searched;  ///< "CUDA_HOME=/opt/cuda: no libnvrtc.so.* there", in order
  std::string summary() const;        ///< the places, joined for a message
};

/// The outside of the search, so that a test can stand in for the machine.
struct NvrtcSearchHost {
  std::string maps = "/proc/self/maps";  ///< libraries that are mapped already
  std::string loader_cache = "/etc/ld.so.cache";
  std::string system_prefix = "/usr/local";  ///< its cuda/ and cuda-*/
  bool loader_paths = true;                  ///< LD_LIBRARY_PATH and the loader's own folders
};

/// The documented order:
///   1. SLUICE_NVRTC, a file or a folder: nothing else is looked at where it is set.
///   2. CUDA_HOME or CUDA_PATH: its lib64, lib, targets/x86_64-linux/lib.
///   3. libraries of this process: a mapped libnvrtc, or one beside a mapped CUDA library (PyTorch's, say).
///   4. prefixes of PATH: their toolkit (bin/nvcc's lib64) and their pip packages
///   (lib/python3*/site-packages/nvidia/*).
///   5. /usr/local/cuda, then /usr/local/cuda-*, newest first.
///   6. the loader: LD_LIBRARY_PATH, its standard folders, its cache.
/// Within a folder the newest major version wins.
NvrtcLocation find_nvrtc(const Environment&, const NvrtcSearchHost& = {});

}  // namespace sl
