// Shapes of mult_tf32 that pay on large problems only, so that the problem table, which is small, never chooses them.
#include <gtest/gtest.h>

#include "schedules/list.hpp"
#include "schedules/shape_cases.hpp"

namespace sl::test {
namespace {

constexpr ShapeCase cases[] = {
    // A group a block and all groups a block; both layouts; the last tiles shorter, blocks with several tiles.
    {"g3mb2ic3ih20oc96oh20kh9ph4",
     "out_units=4,units=4,part=4,down=1,tiles=1,rows=4,words=2,stages=2,blocks=2,threads=64"},
    {"g3mb2ic3ih20oc96oh20kh9ph4 tag=nhwc wtag=ohwi bias=f32 act=relu",
     "out_units=12,units=4,part=1,down=2,tiles=2,rows=2,words=2,stages=2,blocks=2,threads=96"},
    {"g3mb2ic3ih20oc96oh20kh9ph4 z=1",
     "out_units=12,units=2,part=2,down=1,tiles=2,rows=3,words=1,stages=1,blocks=3,threads=192"},
    {"g3mb1ic3ih20oc96oh20kh9ph4 tag=nhwc z=1",
     "out_units=4,units=1,part=1,down=4,tiles=3,rows=1,words=1,stages=2,blocks=1,threads=128"},
    // Stems: even columns first, in either width of a place; rows longer than a block has threads.
    {"g1mb2ic3ih37iw70oc64oh19ow35kh7kw7sh2sw2ph3pw3",
     "out_units=8,units=4,part=4,down=1,tiles=2,rows=2,words=1,stages=1,blocks=2,threads=64"},
    {"g1mb2ic3ih37iw70oc64oh19ow35kh7kw7sh2sw2ph3pw3 tag=nhwc bias=same",
     "out_units=4,units=4,part=2,down=2,tiles=1,rows=2,words=2,stages=2,blocks=5,threads=64"},
    {"g1mb1ic3ih30oc24oh15kh7sh2ph3 wtag=ohwi act=silu",
     "out_units=3,units=3,part=1,down=2,tiles=2,rows=2,words=2,stages=1,blocks=2,threads=64"},
    {"g1mb1ic3ih30oc24oh15kh7sh2ph3 tag=nhwc align=4",
     "out_units=3,units=3,part=1,down=1,tiles=1,rows=4,words=2,stages=2,blocks=2,threads=64"},
    // Groups of 8 channels; a chunk of groups that is not full; an even kernel; one output below and beside the others.
    {"g5mb2ic40ih13oc80oh12kh4ph1",
     "out_units=4,units=2,part=1,down=2,tiles=2,rows=2,words=2,stages=2,blocks=2,threads=128"},
    {"g5mb2ic40ih13oc80oh12kh4ph1 tag=nhwc",
     "out_units=4,units=2,part=4,down=1,tiles=1,rows=2,words=1,stages=1,blocks=3,threads=64"},
    {"g3mb1ic24ih17iw33oc24oh17ow33kh5kw5ph2pw2",
     "out_units=1,units=1,part=4,down=2,tiles=2,rows=1,words=1,stages=1,blocks=2,threads=64"},
    {"g3mb1ic24ih17iw33oc24oh17ow33kh5kw5ph2pw2 tag=nhwc",
     "out_units=3,units=1,part=2,down=1,tiles=1,rows=3,words=2,stages=2,blocks=2,threads=96"},
    // Other strides and dilations, pads on one side only, kernels of one row or column.
    {"g2mb1ic4ih19iw23oc32oh15ow17kh3kw4dh1dw1ph0pw0 align=4",
     "out_units=2,units=2,part=2,down=1,tiles=1,rows=2,words=2,stages=2,blocks=2,threads=64"},
    {"g2mb1ic4ih31iw40oc32oh9ow11kh5kw7sh3sw3dw1ph0pw3 tag=nhwc",
     "out_units=4,units=2,part=1,down=1,tiles=1,rows=2,words=2,stages=1,blocks=3,threads=128"},
    {"g2mb1ic4ih21iw40oc16oh10ow17kh3kw5sh2sw2dw2ph0pw3",
     "out_units=1,units=1,part=4,down=1,tiles=1,rows=2,words=1,stages=2,blocks=2,threads=64"},
    {"g2mb2ic2ih1iw90oc16oh1ow62kh1kw29ph0pw0",
     "out_units=1,units=1,part=4,down=1,tiles=2,rows=1,words=2,stages=2,blocks=2,threads=64"},
    {"g2mb2ic2ih60iw5oc16oh32ow5kh29kw1ph0pw0 tag=nhwc",
     "out_units=2,units=1,part=1,down=2,tiles=1,rows=2,words=2,stages=1,blocks=2,threads=64"},
};

TEST(MultTf32, ShapesForLargeProblems) { test_shapes(mult_tf32, cases); }

TEST(MultTf32, NumbersOfEverySize) {
  test_sizes_of_numbers(mult_tf32, {"g2mb1ic2ih9oc32oh9kh5ph2", "g1mb1ic3ih13oc16oh7kh7sh2ph3"});
}

}  // namespace
}  // namespace sl::test
