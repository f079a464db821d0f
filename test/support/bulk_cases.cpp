#include "support/bulk_cases.hpp"

#include <gtest/gtest.h>

#include "schedules/list.hpp"

namespace sl::test {
namespace {

struct Row {
  const Schedule* schedule;
  const char *problem, *config;
};
const Row rows[] = {
    // A thread a plane, results in place; two channel blocks a block, then the last, which is half empty.
    {&dw_plane_bulk, "g40mb5ic40ih14oc40oh14kh3ph1 dt=f16 bias=same",
     "planes=16,strips=1,tiles=1,stages=3,grid=2,threads=32"},
    {&dw_plane_bulk, "g40mb5ic40ih8iw6oc40oh8ow6kh5kw5ph2pw2 dt=f32 act=relu",
     "planes=32,strips=1,tiles=1,stages=2,grid=3,threads=32"},
    {&dw_plane_bulk, "g40mb3ic40ih7oc40oh7kh5ph2 dt=f32", "planes=8,strips=1,tiles=1,stages=4,grid=1,threads=32"},
    // Strips, so results beside; a residual comes as x does; odd rows; one image, so that weights change every unit.
    {&dw_plane_bulk, "g24mb5ic24ih14oc24oh14kh5ph2 dt=bf16 z=1",
     "planes=8,strips=7,tiles=1,stages=3,grid=2,threads=64"},
    {&dw_plane_bulk, "g24mb7ic24ih7oc24oh7kh3ph1 dt=f16", "planes=16,strips=4,tiles=1,stages=3,grid=2,threads=64"},
    {&dw_plane_bulk, "g80mb1ic80ih7oc80oh7kh7ph3 dt=f16 bias=f32",
     "planes=8,strips=4,tiles=1,stages=3,grid=2,threads=32"},
    {&dw_plane_bulk, "g16mb4ic16ih19oc16oh10kh5sh2ph2 dt=f16", "planes=8,strips=3,tiles=2,stages=2,grid=3,threads=64"},
    {&dw_plane_bulk, "g16mb2ic16ih21oc16oh21kh3ph1 dt=f32 z=1", "planes=4,strips=5,tiles=3,stages=3,grid=1,threads=64"},
    {&dw_plane_bulk, "g8mb3ic8ih14oc8oh14kh3ph1 dt=f16", "planes=8,strips=7,tiles=1,stages=3,grid=99,threads=64"},
};

}  // namespace

std::vector<BulkCase> bulk_cases() {
  std::vector<BulkCase> cases;
  for (const Row& row : rows) {
    const Result<ConvProblem> problem = parse(row.problem);
    const std::optional<Config> config = Config::parse(row.config);
    EXPECT_TRUE(problem.ok() && config) << row.problem << " " << row.config;
    if (!problem.ok() || !config) continue;
    const Refusal misfit = row.schedule->fits(*problem, *config);
    EXPECT_FALSE(misfit) << row.problem << " " << row.config << ": " << misfit.value_or("");
    if (!misfit) cases.push_back({row.schedule, *problem, *config});
  }
  return cases;
}

}  // namespace sl::test
