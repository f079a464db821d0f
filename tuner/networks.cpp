#include "tuner/networks.hpp"

#include "tuner/suite.hpp"

namespace sl::tool {

Result<std::map<std::string, std::vector<std::string>>> networks_by_shape(const std::vector<std::string>& suites) {
  std::map<std::string, std::vector<std::string>> networks;
  for (const std::string& suite : suites) {
    SL_ASSIGN(const Suite read, read_suite(suite));
    for (const SuiteCall& call : read.calls) {
      auto& names = networks[shape_of(call.problem)];
      names.insert(names.end(), call.networks.begin(), call.networks.end());
    }
  }
  for (auto& [shape, names] : networks) {  // a network in two suites is one
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
  }
  return networks;
}

}  // namespace sl::tool
