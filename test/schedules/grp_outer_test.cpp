// Shapes of grp_outer that pay on large problems only, so that the problem table, which is small, never chooses them.
#include <gtest/gtest.h>

#include "schedules/list.hpp"
#include "schedules/shape_cases.hpp"

namespace sl::test {
namespace {

constexpr ShapeCase cases[] = {
    // Wide tiles; NHWC with more columns than a batch of loads takes, and blocks that share a row.
    {"g4mb2ic32ih9iw56oc32oh9ow56kh3kw3ph1pw1 tag=nhwc", "outs=8,rows=1,cols=8,lanes=4,high=2,wide=7,threads=64"},
    {"g3mb2ic24ih9iw75oc24oh9ow75kh3kw3ph1pw1 tag=nhwc wtag=ohwi",
     "outs=8,rows=1,cols=8,lanes=1,high=4,wide=10,threads=64"},
    {"g4mb1ic32ih10iw56oc32oh10ow56kh3kw3ph1pw1 tag=nhwc bias=f32 act=relu z=1",
     "outs=8,rows=2,cols=4,lanes=2,high=2,wide=7,threads=32"},
    {"g5mb1ic40ih9iw28oc40oh9ow28kh3kw3ph1pw1 tag=nhwc", "outs=8,rows=1,cols=7,lanes=4,high=2,wide=4,threads=32"},
    // NCHW: stored from registers, and by way of shared memory in vectors of one row and of a line of rows.
    {"g4mb2ic32ih9iw56oc32oh9ow56kh3kw3ph1pw1", "outs=8,rows=1,cols=8,lanes=4,high=2,wide=7,threads=64"},
    {"g3mb1ic24ih9iw28oc24oh9ow28kh3kw3ph1pw1 wtag=ohwi bias=same z=1",
     "outs=8,rows=2,cols=4,lanes=2,high=3,wide=7,threads=64"},
    {"g5mb2ic40ih9iw28oc40oh9ow28kh3kw3ph1pw1 act=silu", "outs=8,rows=1,cols=7,lanes=4,high=2,wide=4,threads=32"},
    {"g4mb2ic32ih14iw14oc32oh14ow14kh3kw3ph1pw1 z=1", "outs=8,rows=1,cols=7,lanes=2,high=14,wide=2,threads=64"},
    {"g4mb1ic32ih14iw14oc32oh14ow14kh3kw3ph1pw1 align=4", "outs=8,rows=1,cols=7,lanes=2,high=4,wide=2,threads=32"},
    {"g9mb2ic72ih7iw7oc72oh7ow7kh3kw3ph1pw1", "outs=8,rows=1,cols=7,lanes=4,high=7,wide=1,threads=32"},
    {"g4mb2ic32ih9iw28oc32oh9ow28kh3kw3ph1pw1 bias=f32 z=1", "outs=4,rows=1,cols=14,lanes=4,high=4,wide=2,threads=32"},
    {"g4mb1ic32ih9iw28oc32oh9ow28kh3kw3ph1pw1 tag=nhwc", "outs=4,rows=1,cols=14,lanes=4,high=4,wide=2,threads=32"},
    {"g4mb1ic32ih9iw21oc32oh9ow21kh3kw3ph1pw1", "outs=4,rows=2,cols=7,lanes=4,high=2,wide=3,threads=32"},
    // Strides, dilation, other kernels, pads on one side only.
    {"g4mb2ic32ih17iw32oc32oh9ow16kh3kw3sh2sw2ph1pw1 tag=nhwc",
     "outs=8,rows=1,cols=8,lanes=2,high=4,wide=2,threads=32"},
    {"g4mb2ic32ih17iw32oc32oh9ow16kh3kw3sh2sw2ph1pw1", "outs=8,rows=2,cols=4,lanes=2,high=3,wide=4,threads=32"},
    {"g3mb1ic24ih11iw19oc24oh11ow19kh5kw5ph2pw2", "outs=8,rows=1,cols=8,lanes=3,high=3,wide=3,threads=32"},
    {"g3mb1ic24ih9iw17oc24oh9ow17kh7kw7ph3pw3 tag=nhwc", "outs=8,rows=1,cols=4,lanes=3,high=2,wide=5,threads=32"},
    {"g2mb1ic16ih11iw12oc16oh11ow12kh3kw3dh1dw1ph2pw2 tag=nhwc",
     "outs=8,rows=2,cols=4,lanes=2,high=3,wide=3,threads=32"},
    {"g2mb2ic16ih9iw9oc16oh9ow9kh1kw1ph0pw0", "outs=8,rows=4,cols=2,lanes=2,high=3,wide=5,threads=32"},
    {"g2mb1ic16ih8iw11oc16oh9ow8kh2kw4ph1pw0", "outs=8,rows=1,cols=8,lanes=2,high=9,wide=1,threads=32"},
    // The stem of a network: fewer channels than a vector has.
    {"g1mb1ic3ih30iw30oc64oh15ow15kh7kw7sh2sw2ph3pw3", "outs=8,rows=1,cols=4,lanes=4,high=15,wide=4,threads=256"},
    // Odd numbers of channels and of taps; lanes that are a share of a group; the last block's lanes beyond the last.
    {"g2mb1ic6ih9iw9oc8oh9ow9kh3kw3ph1pw1 tag=nhwc", "outs=4,rows=2,cols=8,lanes=2,high=5,wide=2,threads=32"},
    {"g2mb1ic6ih9iw9oc8oh9ow9kh3kw3ph1pw1", "outs=4,rows=2,cols=8,lanes=2,high=5,wide=2,threads=32"},
    {"g2mb1ic8ih9iw9oc48oh9ow9kh3kw3ph1pw1 tag=nhwc", "outs=8,rows=1,cols=8,lanes=1,high=9,wide=2,threads=32"},
    {"g3mb1ic12ih9iw9oc48oh9ow9kh3kw3ph1pw1", "outs=4,rows=1,cols=8,lanes=8,high=2,wide=2,threads=32"},
    {"g7mb2ic28ih6iw9oc28oh6ow9kh3kw3ph1pw1 tag=nhwc", "outs=4,rows=4,cols=2,lanes=4,high=1,wide=5,threads=32"},
    {"g2mb1ic32ih6iw9oc16oh6ow9kh3kw3ph1pw1 tag=nhwc", "outs=4,rows=1,cols=4,lanes=2,high=4,wide=3,threads=32"},
};

TEST(GrpOuter, ShapesForLargeProblems) { test_shapes(grp_outer, cases); }

}  // namespace
}  // namespace sl::test
