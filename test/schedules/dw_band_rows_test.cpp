// Shapes of dw_band_rows' blocks that go on from tile to tile, which the problem table, which is small, does not reach:
// tiles of even height, filter rows two at a time, shapes that only larger devices get.
#include <gtest/gtest.h>

#include "schedules/list.hpp"
#include "schedules/shape_cases.hpp"

namespace sl::test {
namespace {

TEST(DwBandRows, BlocksThatGoOn) {
  const ShapeCase cases[] = {
      // Two filter rows at once: an odd number of them, an even one, and 9; then 4 groups of two images.
      {"g24mb3ic24ih28oc24oh28kh7ph3 dt=f16 tag=nhwc",
       "channels=16,images=1,groups=2,pack=1,split=1,threads=512,blocks=1,grid=4"},
      {"g16mb3ic16ih26oc16oh26kh8ph3 dt=bf16 tag=nhwc bias=f32 act=relu",
       "channels=16,images=1,groups=2,pack=1,split=1,threads=256,blocks=2,grid=2"},
      {"g16mb2ic16ih28oc16oh28kh9ph4 dt=f16 tag=nhwc z=1",
       "channels=8,images=1,groups=2,pack=1,split=1,threads=256,blocks=2,grid=2"},
      {"g8mb5ic8ih31oc8oh31kh7ph3 dt=f16 tag=nhwc",
       "channels=8,images=2,groups=4,pack=2,split=1,threads=256,blocks=1,grid=2"},
      {"g40mb3ic40ih14oc40oh14kh5ph2 dt=f16 tag=nhwc act=silu",
       "channels=16,images=2,groups=2,pack=2,split=1,threads=256,blocks=2,grid=3"},
      {"g16mb3ic16ih13oc16oh13kh6ph2 dt=f16 tag=nhwc",
       "channels=16,images=2,groups=2,pack=2,split=1,threads=256,blocks=3,grid=1"},
      // Whole small planes of one image, 32 channels; the last block's are fewer.
      {"g72mb3ic72ih14oc72oh14kh7ph3 dt=bf16 tag=nhwc bias=same",
       "channels=32,images=1,groups=1,pack=1,split=1,threads=512,blocks=1,grid=6"},
      {"g32mb2ic32ih16oc32oh16kh5ph2 dt=f16 tag=nhwc",
       "channels=32,images=1,groups=1,pack=1,split=1,threads=512,blocks=1,grid=1"},
      // Tiles of 10 rows for 16, 13 for 16 (and 11 in the last), 17 for 32, 7 of two images for 8.
      {"g16mb2ic16ih20oc16oh20kh7ph3 dt=f16 tag=nhwc",
       "channels=16,images=1,groups=1,pack=1,split=1,threads=512,blocks=1,grid=1"},
      {"g16mb1ic16ih37iw56oc16oh37ow56kh7kw7ph3pw3 dt=f16 tag=nhwc bias=f32 z=1",
       "channels=16,images=1,groups=1,pack=1,split=1,threads=512,blocks=1,grid=2"},
      {"g8mb2ic8ih34iw30oc8oh34ow30kh9kw7ph4pw3 dt=bf16 tag=nhwc",
       "channels=8,images=1,groups=2,pack=1,split=1,threads=256,blocks=1,grid=1"},
      {"g16mb4ic16ih14oc16oh14kh7ph3 dt=f16 tag=nhwc act=relu",
       "channels=16,images=2,groups=1,pack=2,split=1,threads=256,blocks=2,grid=1"},
  };
  test_shapes(dw_band_rows, cases);
}

TEST(DwBandRows, TilesOfEvenHeight) {
  const ShapeCase cases[] = {
      {"g3mb2ic3ih34oc3oh34kh11ph5 dt=f16", "channels=1,images=2,groups=1,pack=1,split=1,threads=64,blocks=1,grid=1"},
      {"g4mb1ic4ih39iw21oc4oh37ow19kh9kw9ph3pw3 dt=bf16 bias=f32 act=relu",
       "channels=2,images=1,groups=2,pack=1,split=2,threads=128,blocks=1,grid=1"},
      {"g16mb2ic16ih30oc16oh28kh13ph5 dt=f16 tag=nhwc",
       "channels=8,images=1,groups=1,pack=1,split=1,threads=256,blocks=1,grid=1"},
      {"g16mb2ic16ih37oc16oh37kh11ph5 dt=f16 tag=nhwc z=1",
       "channels=16,images=1,groups=1,pack=1,split=1,threads=256,blocks=1,grid=1"},
  };
  test_shapes(dw_band_rows, cases);
}

// Planes of one chunk of columns whose padding gives outputs of several: filter rows are not paired there.
TEST(DwBandRows, OutputsWiderThanTheirPlanes) {
  const ShapeCase cases[] = {
      {"g12mb2ic12ih5iw7oc12oh14ow14kh5kw5ph6pw5 dt=f16 tag=nhwc",
       "channels=8,images=1,groups=1,pack=1,split=1,threads=256,blocks=2,grid=2"},
      {"g12mb2ic12ih5iw7oc12oh14ow14kh5kw5ph6pw5 dt=bf16 tag=nhwc bias=f32",
       "channels=8,images=2,groups=1,pack=2,split=1,threads=256,blocks=1,grid=1"},
      {"g3mb2ic3ih6iw6oc3oh9ow17kh9kw9ph5pw9 dt=f16 act=relu",
       "channels=1,images=2,groups=1,pack=1,split=1,threads=64,blocks=1,grid=1"},
  };
  test_shapes(dw_band_rows, cases);
}

}  // namespace
}  // namespace sl::test
