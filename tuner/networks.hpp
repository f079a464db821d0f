// Which networks make a call, as suites say: for trying what was learned from calls on networks left out.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "routing/left_out.hpp"

namespace sl::tool {

/// Of each shape_of() in any of the suites the networks, sorted, each once.
Result<std::map<std::string, std::vector<std::string>>> networks_by_shape(const std::vector<std::string>& suites);

/// Fills in `networks` of each call, whatever its batch, type and layout. No suites: nothing is done. Suites that name
/// none of the calls' networks are Code::invalid.
template <class Call>
Status name_networks(const std::vector<std::string>& suites, std::vector<Call>& calls) {
  if (suites.empty()) return {};
  SL_ASSIGN(auto networks, networks_by_shape(suites));
  for (Call& call : calls) call.networks = networks[shape_of(call.problem)];
  if (std::any_of(calls.begin(), calls.end(), [](const Call& call) { return !call.networks.empty(); })) return {};
  return Error{Code::invalid,
               "--suite: no suite names a network that makes one of the measured calls, so none can be left out"};
}

}  // namespace sl::tool
