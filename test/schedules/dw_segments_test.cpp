// Shapes of dw_segments that the problem table, which is small, never chooses.
#include <gtest/gtest.h>

#include "schedules/list.hpp"
#include "schedules/shape_cases.hpp"

namespace sl::test {
namespace {

constexpr ShapeCase cases[] = {
    // Whole rows: 32 images, channels that do not fill a block; two planes a thread; tiles of a row; strips.
    {"g3mb37ic3ih14oc3oh14kh13ph6 tag=nchw bias=f32 act=relu",
     "channels=1,images=32,per=1,cols=14,tiles=1,rows=14,step=1,chunk=2,fence=2,whole=2,threads=224"},
    {"g36mb3ic36ih14oc36oh14kh13ph6 tag=nhwc z=1",
     "channels=32,images=2,per=2,cols=14,tiles=1,rows=14,step=1,chunk=4,fence=2,whole=2,threads=128"},
    {"g5mb9ic5ih15oc5oh8kh11sh2ph5 tag=nchw dt=f16",
     "channels=4,images=8,per=1,cols=4,tiles=2,rows=4,step=2,chunk=2,fence=1,whole=2,threads=128"},
    {"g20mb3ic20ih9iw150oc20oh9ow150kh11kw11ph5pw5 tag=nhwc dt=bf16",
     "channels=16,images=2,per=1,cols=8,tiles=5,rows=3,step=1,chunk=3,fence=2,whole=2,threads=160"},
    // Few planes: neighbouring lanes are segments far apart.
    {"g3mb5ic3ih28oc3oh28kh31ph15 tag=nchw",
     "channels=1,images=4,per=2,cols=14,tiles=2,rows=28,step=1,chunk=20,fence=2,whole=1,threads=128"},
    {"g3mb1ic3ih14oc3oh14kh13ph6 tag=nhwc act=silu",
     "channels=1,images=1,per=1,cols=14,tiles=1,rows=7,step=2,chunk=3,fence=1,whole=1,threads=32"},
    // 16-bit channels that come in pairs, and an odd number of them.
    {"g12mb3ic12ih14oc12oh14kh13ph6 tag=nhwc dt=f16 bias=same act=gelu_erf z=1",
     "channels=8,images=2,per=2,cols=14,tiles=1,rows=14,step=1,chunk=9,fence=2,whole=1,threads=128"},
    {"g13mb3ic13ih14oc13oh14kh13ph6 tag=nhwc dt=bf16",
     "channels=8,images=2,per=1,cols=14,tiles=1,rows=14,step=1,chunk=18,fence=2,whole=1,threads=128"},
    // Kernel rows that are walked in turns, padded rows of several blocks.
    {"g3mb2ic3ih3iw300oc3oh3ow300kh3kw150ph1pw75 tag=nchw",
     "channels=1,images=2,per=1,cols=28,tiles=6,rows=3,step=1,chunk=2,fence=2,whole=1,threads=192"},
    {"g5mb2ic5ih2iw260oc5oh2ow260kh1kw255ph0pw127 tag=nhwc dt=f16",
     "channels=4,images=1,per=1,cols=16,tiles=5,rows=2,step=1,chunk=1,fence=2,whole=1,threads=160"},
};

TEST(DwSegments, ShapesForOtherProblems) { test_shapes(dw_segments, cases); }

}  // namespace
}  // namespace sl::test
