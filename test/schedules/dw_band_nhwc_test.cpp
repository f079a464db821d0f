// Bands of one row, which dw_band_nhwc brings through registers, in shapes that the problem table does not reach:
// several tiles and steps a block, strides, holes, what is added to the sums, channels that end inside a block.
#include <gtest/gtest.h>

#include "schedules/list.hpp"
#include "schedules/shape_cases.hpp"

namespace sl::test {
namespace {

TEST(DwBandNhwc, BandsOfOneRow) {
  const ShapeCase cases[] = {
      {"g40mb5ic40ih1iw200oc40oh1ow200kh1kw31ph0pw15 dt=f16 tag=nhwc",
       "ch=32,cw=2,own=2,rows=1,groups=1,strips=16,images=1,slots=1,chunk=64,threads=256,blocks=1,steps=2"},
      {"g72mb3ic72ih1iw150oc72oh1ow75kh1kw15sh1sw2ph0pw7 dt=bf16 tag=nhwc bias=f32 z=1",
       "ch=64,cw=2,own=4,rows=1,groups=1,strips=8,images=1,slots=1,chunk=64,threads=256,blocks=1,steps=3"},
      {"g64mb3ic64ih1iw133oc64oh1ow73kh1kw31ph0pw0dh0dw1 dt=f16 tag=nhwc act=relu",
       "ch=32,cw=2,own=1,rows=1,groups=1,strips=16,images=1,slots=1,chunk=64,threads=512,blocks=1,steps=1"},
      // Strips that fill no product.
      {"g32mb2ic32ih1iw40oc32oh1ow40kh1kw17ph0pw8 dt=f16 tag=nhwc bias=same act=silu",
       "ch=32,cw=2,own=4,rows=1,groups=1,strips=5,images=1,slots=1,chunk=64,threads=128,blocks=1,steps=2"},
      // Beside them, by copies: one of several input rows, rows ahead, several images a step.
      {"g96mb2ic96ih3iw90oc96oh1ow90kh1kw16sh3sw1ph0pw8 dt=bf16 tag=nhwc",
       "ch=32,cw=2,own=2,rows=1,groups=1,strips=16,images=1,slots=1,chunk=64,threads=512,blocks=1,steps=2"},
      {"g40mb5ic40ih1iw200oc40oh1ow200kh1kw31ph0pw15 dt=f16 tag=nhwc z=1",
       "ch=32,cw=2,own=4,rows=1,groups=1,strips=16,images=1,slots=2,chunk=64,threads=128,blocks=1,steps=2"},
      {"g33mb5ic33ih1iw90oc33oh1ow90kh1kw15ph0pw7 dt=f16 tag=nhwc align=2",
       "ch=16,cw=2,own=1,rows=1,groups=1,strips=8,images=4,slots=2,chunk=64,threads=512,blocks=1,steps=2"},
  };
  test_shapes(dw_band_nhwc, cases);
}

}  // namespace
}  // namespace sl::test
