// Shapes of grp_fma that pay on large problems only, so that the problem table, which is small, never chooses them.
#include <gtest/gtest.h>

#include "schedules/list.hpp"
#include "schedules/shape_cases.hpp"

namespace sl::test {
namespace {

constexpr ShapeCase cases[] = {
    // Weights in registers, wide tiles, two threads a group's channels.
    {"g4mb2ic16ih12iw29oc16oh12ow29kh3kw3ph1pw1 tag=nhwc",
     "outs=2,cols=7,split=1,lanes=8,tiles=4,copy=4,stages=4,rows=12,threads=32"},
    {"g4mb2ic32ih9iw29oc32oh9ow29kh3kw3ph1pw1 tag=nhwc wtag=ohwi",
     "outs=2,cols=8,split=2,lanes=8,tiles=2,copy=4,stages=3,rows=4,threads=32"},
    {"g4mb2ic32ih13iw28oc32oh13ow28kh3kw3ph1pw1 tag=nchw",
     "outs=2,cols=8,split=2,lanes=8,tiles=4,copy=4,stages=2,rows=10,threads=64"},
    {"g6mb2ic24ih11iw28oc24oh11ow28kh3kw3ph1pw1 tag=nchw bias=f32 act=relu z=1",
     "outs=2,cols=4,split=1,lanes=4,tiles=7,copy=2,stages=8,rows=4,threads=32"},
    {"g4mb1ic32ih13iw30oc32oh7ow15kh3kw3sh2sw2ph1pw1 tag=nchw dt=f16",
     "outs=2,cols=8,split=2,lanes=8,tiles=2,copy=2,stages=4,rows=3,threads=32"},
    // Weights from shared memory, channels in a loop, more copies than stay in registers.
    {"g3mb1ic24ih9iw17oc24oh9ow17kh7kw7ph3pw3 tag=nhwc",
     "outs=2,cols=8,split=1,lanes=4,tiles=3,copy=4,stages=2,rows=9,threads=32"},
    {"g3mb1ic24ih9iw20oc24oh9ow20kh7kw7ph3pw3 tag=nchw wtag=ohwi dt=bf16",
     "outs=2,cols=4,split=2,lanes=4,tiles=5,copy=4,stages=2,rows=5,threads=64"},
    {"g3mb1ic24ih9iw19oc24oh9ow19kh5kw5ph2pw2 tag=nchw dt=f16 align=2",
     "outs=4,cols=2,split=1,lanes=2,tiles=10,copy=1,stages=2,rows=5,threads=32"},
    // Lanes that are a share of a group: a multiplier, and a stem.
    {"g3mb2ic3ih9iw10oc48oh9ow10kh3kw3ph1pw1 tag=nhwc",
     "outs=4,cols=4,split=1,lanes=2,tiles=3,copy=1,stages=2,rows=9,threads=32"},
    {"g1mb2ic3ih31iw22oc64oh16ow11kh7kw7sh2sw2ph3pw3 tag=nhwc",
     "outs=4,cols=4,split=1,lanes=8,tiles=3,copy=1,stages=2,rows=16,threads=32"},
    {"g1mb2ic4ih15iw12oc64oh15ow12kh3kw3dh1ph2pw1 tag=nchw",
     "outs=4,cols=4,split=2,lanes=4,tiles=3,copy=4,stages=2,rows=3,threads=32"},
};

TEST(GrpFma, ShapesForLargeProblems) { test_shapes(grp_fma, cases); }

}  // namespace
}  // namespace sl::test
