// libcudnn, opened at run time.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/environment.hpp"
#include "core/result.hpp"
#include "tuner/cudnn/abi.hpp"

namespace sl::cudnn {

/// cuDNN's functions. Immutable once loaded; cuDNN itself is never closed, since cuDNN keeps exit handlers of its own.
struct Library {
#define SLUICE_MEMBER(member, symbol, result, arguments) result(*member) arguments = nullptr;
  SLUICE_CUDNN_SYMBOLS(SLUICE_MEMBER)
#undef SLUICE_MEMBER
  std::string path;         ///< as mapped
  std::size_t version = 0;  ///< 10000 * major + 100 * minor + patch
  bool on_host = false;     ///< computes on host memory: the tests' library says so, cuDNN does not

  std::string version_text() const;  ///< "9.19.0"
  /// Success, or an Error (Code::unsupported, out_of_memory or device) that names the call, the status and cuDNN's own
  /// words.
  Status check(const std::string& call, Status_t) const;
};

/// Opens `path`, a file or a folder that holds one; where it is empty, the first of: what the loader finds (a mapped
/// one, LD_LIBRARY_PATH, its cache), the folder of the NVRTC that Sluice would use, pip's nvidia/cudnn beside that.
/// Code::environment: none there (every place is named), a symbol is missing, or the version is not 9.x.
Result<std::shared_ptr<const Library>> load_library(const std::string& path, const Environment&);

/// Every mapped cuDNN library, as full paths. Two copies of one library in a process do not get along.
std::vector<std::string> mapped();

}  // namespace sl::cudnn
