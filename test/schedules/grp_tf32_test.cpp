// Shapes of grp_tf32 that pay on large problems only, so that the problem table, which is small, never chooses them.
#include <gtest/gtest.h>

#include "schedules/list.hpp"
#include "schedules/shape_cases.hpp"

namespace sl::test {
namespace {

constexpr ShapeCase cases[] = {
    // One tile of columns: what lies outside is cleared once. Strips, images of a warp, the last of both shorter.
    {"g4mb2ic32ih28oc32oh28kh3ph1", "cols=4,across=8,ahead=2,steps=14,turns=1,phases=3,threads=128"},
    {"g4mb2ic32ih28oc32oh28kh3ph1 tag=nhwc wtag=ohwi bias=f32 act=relu",
     "cols=4,across=8,ahead=2,steps=5,turns=1,phases=1,threads=64"},
    {"g3mb5ic24ih14oc24oh14kh3ph1 z=1", "cols=4,across=4,ahead=3,steps=7,turns=2,phases=3,threads=128"},
    {"g3mb5ic24ih14oc24oh14kh3ph1 tag=nhwc z=1", "cols=4,across=4,ahead=1,steps=4,turns=3,phases=1,threads=64"},
    {"g5mb5ic40ih7oc40oh7kh3ph1 bias=same", "cols=4,across=2,ahead=2,steps=2,turns=4,phases=3,threads=64"},
    {"g5mb5ic40ih7oc40oh7kh3ph1 tag=nhwc", "cols=8,across=1,ahead=2,steps=1,turns=4,phases=1,threads=64"},
    {"g2mb1ic16ih9iw56oc16oh9ow56kh3kw3ph1pw1", "cols=8,across=8,ahead=2,steps=4,turns=1,phases=3,threads=32"},
    {"g2mb1ic16ih9iw56oc16oh9ow56kh3kw3ph1pw1 tag=nhwc", "cols=8,across=8,ahead=2,steps=9,turns=1,phases=1,threads=32"},
    // Several tiles.
    {"g2mb1ic16ih9iw56oc16oh9ow56kh3kw3ph1pw1", "cols=4,across=8,ahead=1,steps=2,turns=1,phases=3,threads=32"},
    {"g2mb2ic16ih9iw37oc16oh9ow37kh3kw3ph1pw1 tag=nhwc", "cols=4,across=4,ahead=2,steps=3,turns=1,phases=1,threads=64"},
    {"g2mb2ic16ih9iw37oc16oh9ow37kh3kw3ph1pw1 act=silu", "cols=8,across=2,ahead=2,steps=3,turns=1,phases=3,threads=64"},
    {"g2mb1ic16ih9iw40oc16oh9ow40kh3kw3ph1pw1 align=4", "cols=4,across=2,ahead=2,steps=5,turns=1,phases=1,threads=64"},
    {"g2mb1ic16ih9iw40oc16oh9ow40kh3kw3ph1pw1 tag=nhwc align=4",
     "cols=4,across=2,ahead=2,steps=5,turns=1,phases=3,threads=64"},
    // Strides, dilation, other kernels, pads on one side only, several parts of a group's outputs.
    {"g4mb2ic32ih28oc32oh14kh3sh2ph1", "cols=4,across=4,ahead=2,steps=4,turns=1,phases=1,threads=64"},
    {"g4mb2ic32ih28oc32oh14kh3sh2ph1 tag=nhwc", "cols=4,across=4,ahead=2,steps=7,turns=2,phases=2,threads=64"},
    {"g2mb1ic16ih13iw23oc32oh13ow21kh3kw3dh1dw1ph2pw1 tag=nhwc wtag=ohwi",
     "cols=4,across=4,ahead=2,steps=4,turns=1,phases=1,threads=64"},
    {"g2mb1ic16ih13iw23oc32oh13ow21kh3kw3dh1dw1ph2pw1", "cols=4,across=2,ahead=2,steps=4,turns=1,phases=5,threads=64"},
    {"g2mb2ic16ih8iw11oc16oh9ow8kh2kw4ph1pw0", "cols=4,across=2,ahead=2,steps=1,turns=2,phases=1,threads=32"},
    {"g2mb1ic16ih16oc16oh5kh3sh3ph0 tag=nhwc", "cols=4,across=1,ahead=2,steps=1,turns=1,phases=1,threads=32"},
    {"g2mb1ic16ih16oc16oh6kh2sh3ph1", "cols=4,across=2,ahead=1,steps=2,turns=1,phases=1,threads=32"},
    // 4 channels a group: two taps a product, and two output rows or 8 outputs.
    {"g4mb2ic16ih28oc16oh28kh3ph1", "cols=8,across=4,ahead=2,steps=7,turns=1,phases=2,threads=128"},
    {"g4mb2ic16ih28oc16oh28kh3ph1 wtag=ohwi z=1", "cols=4,across=8,ahead=2,steps=3,turns=2,phases=1,threads=64"},
    {"g4mb2ic16ih14oc16oh14kh3ph1 bias=f32 act=relu", "cols=4,across=4,ahead=1,steps=4,turns=2,phases=2,threads=64"},
    {"g3mb2ic12ih14oc24oh14kh3ph1", "cols=4,across=4,ahead=2,steps=4,turns=1,phases=1,threads=64"},
    {"g3mb2ic12ih14oc36oh14kh3ph1", "cols=4,across=2,ahead=2,steps=2,turns=1,phases=2,threads=64"},
    {"g3mb2ic12ih28oc12oh14kh3sh2ph1", "cols=4,across=4,ahead=2,steps=4,turns=1,phases=1,threads=64"},
    {"g3mb1ic12ih13iw19oc12oh13ow19kh3kw3dh1dw1ph2pw2", "cols=8,across=4,ahead=2,steps=2,turns=1,phases=3,threads=32"},
    {"g3mb1ic12ih9iw11oc12oh10ow8kh2kw4ph1pw0", "cols=4,across=2,ahead=2,steps=1,turns=1,phases=1,threads=32"},
};

TEST(GrpTf32, ShapesForLargeProblems) { test_shapes(grp_tf32, cases); }

TEST(GrpTf32, NumbersOfEverySize) {
  test_sizes_of_numbers(grp_tf32, {"g3mb2ic24ih9oc24oh9kh3ph1", "g3mb2ic12ih9oc12oh9kh3ph1"});
}

}  // namespace
}  // namespace sl::test
