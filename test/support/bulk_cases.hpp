// Calls whose blocks go on from unit to unit under the schedules of bulk copies: rings that go round, tables and
// weights that change, images, channels and units that end in between, which the problem table with its few planes
// never has. For the host device and for a GPU.
#pragma once

#include <vector>

#include "schedules/schedule.hpp"

namespace sl::test {

struct BulkCase {
  const Schedule* schedule;
  ConvProblem problem;
  Config config;
};
std::vector<BulkCase> bulk_cases();

}  // namespace sl::test
