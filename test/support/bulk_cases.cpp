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
    // Units of one block: three of one block of channels, then the next; the last has 8 of 16 images.
    {&dw_toeplitz_bulk, "g24mb40ic24ih7oc24oh7kh5ph2 dt=f16 bias=f32",
     "channels=8,groups=1,parts=1,stages=2,grid=2,threads=256"},
    {&dw_toeplitz_bulk, "g24mb40ic24ih7oc24oh7kh5ph2 dt=bf16 act=relu",
     "channels=8,groups=1,parts=2,stages=1,grid=2,threads=512"},
    {&dw_toeplitz_bulk, "g24mb33ic24ih7oc24oh7kh7ph3 dt=f16",
     "channels=8,groups=1,parts=1,stages=3,grid=1,threads=256"},
    // Half of the channels of the last block are not there; two times 16 images; an odd share of warps.
    {&dw_toeplitz_bulk, "g24mb33ic24ih7oc24oh7kh5ph2 dt=f16",
     "channels=16,groups=1,parts=1,stages=1,grid=2,threads=512"},
    {&dw_toeplitz_bulk, "g6mb35ic6ih14oc6oh14kh5ph2 dt=f16 z=1 bias=same",
     "channels=2,groups=2,parts=4,stages=1,grid=2,threads=256"},
    {&dw_toeplitz_bulk, "g6mb35ic6ih14oc6oh14kh5ph2 dt=bf16 act=hard_swish",
     "channels=2,groups=1,parts=3,stages=2,grid=4,threads=192"},
    {&dw_toeplitz_bulk, "g6mb17ic6ih14oc6oh14kh5ph2 dt=f16", "channels=4,groups=1,parts=3,stages=1,grid=1,threads=384"},
    // More blocks than units; outputs larger and smaller than inputs; holes.
    {&dw_toeplitz_bulk, "g2mb3ic2ih14oc2oh14kh5ph2 dt=f16", "channels=2,groups=1,parts=4,stages=2,grid=99,threads=256"},
    {&dw_toeplitz_bulk, "g8mb18ic8ih7iw10oc8oh3ow10kh5kw3ph0pw1 dt=f16",
     "channels=4,groups=1,parts=1,stages=2,grid=1,threads=128"},
    {&dw_toeplitz_bulk, "g4mb18ic4ih10iw12oc4oh12ow12kh5kw3dh1dw0ph5pw1 dt=bf16",
     "channels=2,groups=1,parts=2,stages=4,grid=1,threads=128"},
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
