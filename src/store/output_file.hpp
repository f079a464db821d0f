// Where a file that a user named as an output is put.
#pragma once

#include <filesystem>
#include <string>

#include "core/result.hpp"

namespace sl {

/// Code::environment, "PATH: cannot be written: WHY".
Error cannot_write(const std::filesystem::path& path, const std::string& why);

/// The regular file that `path` is or will be, through symbolic links, so that a rename onto it replaces neither a link
/// nor a device: as root, a rename onto /dev/null would succeed. Code::environment where a folder, a device or a pipe
/// stands there, Code::invalid where the name is empty. Creates nothing.
Result<std::filesystem::path> output_file(const std::filesystem::path& path);

}  // namespace sl
