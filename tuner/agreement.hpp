// What must be the same in everything that is put together: device, driver, build.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/result.hpp"

namespace sl::tool {

/// Keeps the first value seen of each thing, and where. Another value is Code::invalid: the message names both.
class Agreement {
 public:
  Status check(const std::string& what, const std::string& value, const std::string& file) {
    const auto [at, fresh] = first_.try_emplace(what, value, file);
    const auto& [known, origin] = at->second;
    if (fresh || known == value) return {};
    return Error{Code::invalid,
                 file + ": " + what + " is " + value + ", but " + origin + " has " + known + ": not of one tuning"};
  }

 private:
  std::map<std::string, std::pair<std::string, std::string>> first_;
};

}  // namespace sl::tool
