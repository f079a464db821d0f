// The rows of test_problems(). Unequal h and w, kh and kw, ph and pw wherever the kind allows it: a swap must show.
#include <cstdio>
#include <cstdlib>

#include "support/problems.hpp"

namespace sl::test {
namespace {

struct Pair {
  std::int64_t h, w;
};
struct Pads {
  std::int64_t top, left, bottom, right;
};

struct Row {
  const char* name;
  const char* why;
  std::int64_t n, groups, cpg, mult;  // c = groups * cpg, k = groups * mult
  Pair in, kernel, stride, dilation;
  Pads pad;  // the output size follows
};

constexpr Pair one = {1, 1};

constexpr Row rows[] = {
    // Depthwise, kernel sizes.
    {"dw_1x1", "", 2, 9, 1, 1, {6, 11}, {1, 1}, one, one, {0, 0, 0, 0}},
    {"dw_3x3", "torch/nn#1307", 2, 8, 1, 1, {9, 14}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"dw_3x3_same", "mobilenet's kind", 1, 32, 1, 1, {14, 13}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"dw_3x2", "", 1, 7, 1, 1, {8, 11}, {3, 2}, one, one, {1, 0, 0, 1}},
    {"dw_2x3", "even kernel", 3, 5, 1, 1, {7, 12}, {2, 3}, one, one, {0, 2, 1, 0}},
    {"dw_4x4", "even kernel", 1, 9, 1, 1, {11, 9}, {4, 4}, one, one, {1, 2, 2, 1}},
    {"dw_5x5", "Paddle#18939", 2, 12, 1, 1, {10, 13}, {5, 5}, one, one, {2, 1, 2, 1}},
    {"dw_7x7", "convnext's kind", 1, 24, 1, 1, {12, 14}, {7, 7}, one, one, {3, 2, 3, 2}},
    {"dw_9x9", "", 1, 8, 1, 1, {13, 15}, {9, 9}, one, one, {4, 3, 4, 3}},
    {"dw_11x3", "", 2, 9, 1, 1, {14, 9}, {11, 3}, one, one, {5, 1, 5, 1}},
    {"dw_3x11", "", 1, 9, 1, 1, {9, 17}, {3, 11}, one, one, {1, 5, 1, 5}},
    {"dw_13x13", "beyond 9x9", 1, 3, 1, 1, {15, 14}, {13, 13}, one, one, {6, 5, 6, 5}},
    {"dw_17x19", "tiles of rows", 1, 5, 1, 1, {40, 13}, {17, 19}, one, one, {8, 9, 8, 9}},
    {"dw_17x11", "filters beyond registers", 1, 3, 1, 1, {19, 12}, {17, 11}, one, one, {8, 5, 8, 5}},
    {"dw_s2_19x7", "the same with a stride", 2, 5, 1, 1, {21, 16}, {19, 7}, {2, 2}, one, {9, 3, 9, 3}},
    {"dw_d1x3_17x5", "the same with holes", 1, 4, 1, 1, {18, 14}, {17, 5}, one, {1, 3}, {8, 6, 8, 6}},
    {"dw_1x7", "", 2, 10, 1, 1, {5, 16}, {1, 7}, one, one, {0, 3, 0, 3}},
    {"dw_7x1", "", 2, 10, 1, 1, {16, 5}, {7, 1}, one, one, {3, 0, 3, 0}},
    // Channel counts around vector widths.
    {"dw_c1", "Paddle PR 27278: groups = c = 1", 3, 1, 1, 1, {9, 10}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"dw_c3", "mamba#643", 2, 3, 1, 1, {9, 11}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"dw_c5", "mace PR 345", 2, 5, 1, 1, {8, 9}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"dw_c7", "mamba#643", 1, 7, 1, 1, {9, 8}, {5, 3}, one, one, {2, 1, 2, 1}},
    {"dw_c31", "mamba#643", 1, 31, 1, 1, {7, 8}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"dw_c33", "mamba#643", 1, 33, 1, 1, {7, 8}, {3, 3}, one, one, {0, 1, 0, 1}},
    {"dw_c63", "mamba#643", 1, 63, 1, 1, {7, 5}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"dw_c64", "", 2, 64, 1, 1, {7, 6}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"dw_batch5", "rocm-libraries#4998", 5, 8, 1, 1, {7, 9}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"dw_rows_of_8", "widths that divide by 8", 2, 6, 1, 1, {5, 32}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"dw_row_of_37", "a row that ends inside a vector", 1, 6, 1, 1, {5, 37}, {3, 5}, one, one, {1, 2, 1, 2}},
    {"grp8_rows_of_56",
     "several tiles a row, each on whole vectors",
     1,
     2,
     8,
     8,
     {6, 56},
     {3, 3},
     one,
     one,
     {1, 1, 1, 1}},
    {"dw_row_of_129", "longer than a block's strip", 1, 3, 1, 1, {3, 129}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"dw_rows_of_56", "rows that one warp holds", 2, 3, 1, 1, {11, 56}, {7, 7}, one, one, {3, 3, 3, 3}},
    {"dw_rows_of_14", "rows that one thread holds", 2, 8, 1, 1, {9, 14}, {7, 7}, one, one, {3, 3, 3, 3}},
    {"dw_rows_of_14_s2", "", 1, 8, 1, 1, {12, 28}, {5, 5}, {2, 2}, one, {1, 2, 2, 1}},
    {"dw_planes_of_7", "more images than a matrix has rows", 18, 6, 1, 1, {7, 7}, {3, 3}, one, one, {1, 1, 1, 1}},
    // Strides.
    {"dw_s2", "", 2, 9, 1, 1, {13, 16}, {3, 3}, {2, 2}, one, {1, 0, 1, 0}},
    {"dw_s2_5x5", "", 1, 16, 1, 1, {14, 11}, {5, 5}, {2, 2}, one, {2, 1, 2, 1}},
    {"dw_s2_7x7", "", 1, 8, 1, 1, {15, 18}, {7, 7}, {2, 2}, one, {3, 2, 3, 2}},
    {"dw_s1x3", "tensorflow#33005", 2, 8, 1, 1, {9, 19}, {3, 3}, {1, 3}, one, {1, 0, 1, 0}},
    {"dw_s2x1", "tensorflow#33005", 2, 8, 1, 1, {13, 9}, {3, 5}, {2, 1}, one, {1, 2, 1, 2}},
    {"dw_s3", "", 1, 7, 1, 1, {17, 20}, {5, 3}, {3, 3}, one, {2, 1, 2, 1}},
    {"dw_s4_k3", "stride beyond the kernel", 1, 6, 1, 1, {17, 22}, {3, 3}, {4, 4}, one, {1, 0, 0, 1}},
    {"dw_s2_k1", "samples", 2, 8, 1, 1, {9, 12}, {1, 1}, {2, 2}, one, {0, 0, 0, 0}},
    // Dilation.
    {"dw_d2", "ncnn#315", 2, 4, 1, 1, {8, 11}, {3, 3}, one, {2, 2}, {2, 1, 2, 1}},
    {"dw_d2_s2", "tensorflow#27667", 1, 8, 1, 1, {14, 17}, {3, 3}, {2, 2}, {2, 2}, {2, 1, 2, 1}},
    {"dw_d3x1", "keras#16314: k3 s2 dil (3,1) SAME", 2, 9, 1, 1, {14, 13}, {3, 3}, {2, 2}, {3, 1}, {2, 0, 3, 1}},
    {"dw_d1x4", "", 1, 5, 1, 1, {7, 18}, {3, 5}, one, {1, 4}, {1, 8, 1, 8}},
    {"dw_d2_k5", "pytorch#37725: k5 p4 dil2", 1, 8, 1, 1, {12, 15}, {5, 5}, one, {2, 2}, {4, 3, 4, 3}},
    {"dw_d3_s3", "", 1, 5, 1, 1, {19, 16}, {3, 2}, {3, 3}, {3, 3}, {3, 2, 3, 2}},
    // Padding.
    {"dw_valid", "no padding", 2, 9, 1, 1, {9, 12}, {3, 5}, one, one, {0, 0, 0, 0}},
    {"dw_pad_1_2", "nnfusion#192: k5 s2 pads (1,2)", 1, 16, 1, 1, {16, 14}, {5, 5}, {2, 2}, one, {1, 1, 2, 2}},
    {"dw_pad_2_3", "nnfusion#192: k7 s2 pads (2,3)", 1, 16, 1, 1, {16, 14}, {7, 7}, {2, 2}, one, {2, 2, 3, 3}},
    {"dw_pad_lower", "onnxruntime#4488: SAME_LOWER", 2, 8, 1, 1, {10, 13}, {4, 3}, {2, 2}, one, {2, 1, 1, 0}},
    {"dw_causal", "all padding on one side", 1, 9, 1, 1, {9, 10}, {3, 4}, one, one, {2, 3, 0, 0}},
    {"dw_pad_far_only", "all padding on the far side", 1, 9, 1, 1, {9, 10}, {4, 3}, one, one, {0, 0, 3, 2}},
    {"dw_pad_full", "pads of the kernel less one", 1, 5, 1, 1, {6, 9}, {5, 3}, one, one, {4, 2, 4, 2}},
    {"dw_k1_pad1", "legal in PyTorch: a border of the bias alone", 2, 9, 1, 1, {6, 11}, {1, 1}, one, one, {1, 1, 1, 1}},
    {"dw_k1_pads", "", 1, 16, 1, 1, {5, 8}, {1, 1}, {2, 1}, one, {3, 9, 2, 4}},
    {"dw_pad_beyond", "pads beyond the kernel", 2, 8, 1, 1, {5, 8}, {3, 3}, one, one, {4, 4, 3, 5}},
    {"dw_pad_beyond_s2", "", 1, 7, 1, 1, {4, 7}, {3, 3}, {2, 3}, one, {4, 9, 6, 3}},
    {"dw_pad_beyond_d2", "", 1, 8, 1, 1, {3, 2}, {2, 3}, one, {2, 2}, {3, 7, 9, 5}},
    {"dw_pad_beyond_5x5", "", 3, 6, 1, 1, {5, 7}, {5, 5}, one, one, {6, 5, 7, 6}},
    {"dw_pad_beyond_5x3", "", 2, 8, 1, 1, {5, 8}, {5, 3}, one, one, {6, 4, 5, 7}},
    {"dw_pad_beyond_row",
     "tiles of columns wholly in the padding",
     1,
     3,
     1,
     1,
     {2, 9},
     {1, 15},
     one,
     one,
     {0, 150, 0, 160}},
    {"dw_pad_beyond_1x1", "a plane of one pixel", 3, 5, 1, 1, {1, 1}, {3, 3}, one, one, {4, 3, 3, 4}},
    {"dw_11x9_pad_beyond", "", 1, 5, 1, 1, {7, 10}, {11, 9}, one, one, {12, 11, 11, 10}},
    {"mult3_pad_beyond", "", 1, 6, 1, 3, {4, 6}, {3, 3}, one, one, {4, 3, 3, 6}},
    {"mult8_pad_beyond", "", 1, 3, 1, 8, {4, 6}, {3, 3}, one, one, {4, 3, 3, 6}},
    {"grp4_pad_beyond", "", 1, 3, 4, 4, {3, 5}, {3, 3}, one, one, {4, 5, 3, 4}},
    {"grp8_pad_beyond", "", 1, 3, 8, 8, {3, 5}, {3, 3}, one, one, {4, 5, 3, 4}},
    {"grp2_k1_pad2", "pointwise", 2, 4, 2, 3, {3, 4}, {1, 1}, one, one, {2, 1, 1, 2}},
    {"dw_pad_negative", "tensorflow#14601: H3 W1 k1 s(3,1)", 1, 5, 1, 1, {3, 1}, {1, 1}, {3, 1}, one, {0, 0, 0, 0}},
    {"dw_pad_slack", "rows and columns that no window reads", 2, 5, 1, 1, {12, 15}, {2, 3}, {5, 4}, one, {0, 1, 0, 0}},
    // Small inputs under large kernels: FBGEMM PR 395.
    {"dw_1x1_k7", "FBGEMM PR 395", 3, 16, 1, 1, {1, 1}, {7, 7}, one, one, {3, 3, 3, 3}},
    {"dw_2x2_k9", "FBGEMM PR 395", 2, 9, 1, 1, {2, 2}, {9, 9}, one, one, {4, 4, 4, 4}},
    {"dw_2x1_k7x5", "FBGEMM PR 395", 2, 8, 1, 1, {2, 1}, {7, 5}, one, one, {3, 2, 3, 2}},
    {"dw_1x1_k31", "FBGEMM PR 395", 1, 5, 1, 1, {1, 1}, {31, 31}, one, one, {15, 15, 15, 15}},
    {"dw_1x1_k3", "pytorch#180984: N1 C1 1x2", 1, 1, 1, 1, {1, 2}, {3, 3}, one, one, {1, 1, 1, 1}},
    // Few outputs of many taps.
    {"dw_few_k15", "one output a plane", 2, 33, 1, 1, {15, 17}, {15, 17}, one, one, {0, 0, 0, 0}},
    {"dw_few_k14x13", "squeeze", 1, 64, 1, 1, {14, 13}, {14, 13}, one, one, {0, 0, 0, 0}},
    {"dw_few_patch", "FlagGems#6588: s = k, no pad", 3, 8, 1, 1, {14, 14}, {14, 14}, {14, 14}, one, {0, 0, 0, 0}},
    {"dw_few_d2", "", 1, 17, 1, 1, {13, 15}, {6, 7}, one, {2, 2}, {0, 0, 0, 0}},
    // 1-D.
    {"conv1d", "", 2, 12, 1, 1, {1, 33}, {1, 4}, one, one, {0, 3, 0, 0}},
    {"conv1d_k9_d2", "", 1, 8, 1, 1, {1, 40}, {1, 9}, one, {1, 2}, {0, 8, 0, 8}},
    {"conv1d_s2", "", 3, 7, 1, 1, {1, 29}, {1, 5}, {1, 2}, one, {0, 2, 0, 2}},
    {"conv1d_k31", "conformer's kind: images as rows", 6, 4, 1, 1, {1, 152}, {1, 31}, one, one, {0, 15, 0, 15}},
    {"conv1d_grouped", "", 2, 3, 4, 6, {1, 21}, {1, 3}, one, one, {0, 1, 0, 1}},
    {"conv1d_k256", "pytorch#188335: k(256,1), multiplier 2", 2, 4, 1, 2, {260, 1}, {256, 1}, one, one, {8, 0, 7, 0}},
    // Multipliers.
    {"mult2", "", 2, 8, 1, 2, {9, 10}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"mult2_s2", "CUTLASS can_implement: K = 2 groups", 2, 6, 1, 2, {11, 14}, {3, 5}, {2, 2}, one, {1, 2, 1, 2}},
    {"mult3", "", 1, 7, 1, 3, {8, 11}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"mult5_d2", "", 1, 5, 1, 5, {9, 8}, {3, 3}, one, {2, 1}, {2, 1, 2, 1}},
    {"mult7", "", 1, 3, 1, 7, {9, 10}, {5, 3}, one, one, {2, 1, 2, 1}},
    {"mult8_c1", "groups = 1, c = 1", 2, 1, 1, 8, {10, 13}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"mult8", "", 1, 5, 1, 8, {7, 9}, {3, 3}, {2, 1}, one, {1, 1, 1, 1}},
    {"mult16", "", 1, 3, 1, 16, {8, 9}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"mult17", "beyond what dw_mult takes at once", 1, 2, 1, 17, {6, 7}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"mult24", "3 units of 8 outputs", 2, 3, 1, 24, {9, 17}, {4, 2}, {3, 1}, {1, 2}, {2, 1, 1, 0}},
    {"mult4_asymmetric", "", 2, 5, 1, 4, {8, 9}, {4, 3}, {2, 2}, one, {1, 0, 2, 1}},
    // Grouped, a few channels each.
    {"grp2", "", 2, 8, 2, 2, {7, 10}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"grp2_k16_1x1", "pytorch#19912: (1,4,1,1), K16 g2 1x1", 1, 2, 2, 8, {1, 1}, {1, 1}, one, one, {0, 0, 0, 0}},
    {"grp2_last", "xla#49123: 4 to 4, g2, 3x3", 1, 2, 2, 2, {3, 3}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"grp3_5", "K/group differs from C/group", 1, 5, 3, 5, {7, 9}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"grp4", "resnext's kind", 1, 8, 4, 4, {9, 8}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"grp4_2", "fewer out than in", 2, 6, 4, 2, {8, 9}, {3, 3}, one, one, {0, 1, 0, 1}},
    {"grp4_s2_pad", "", 2, 5, 4, 6, {11, 8}, {3, 2}, {2, 2}, one, {1, 1, 0, 0}},
    {"grp8", "MIOpen PR 989: 8/8", 1, 4, 8, 8, {8, 9}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"grp8_1", "one output channel a group", 2, 9, 8, 1, {7, 8}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"grp8_3_d2", "", 1, 3, 8, 3, {9, 11}, {3, 3}, one, {2, 1}, {2, 1, 2, 1}},
    {"grp2_5x5", "", 1, 6, 2, 3, {9, 11}, {5, 5}, one, one, {2, 1, 2, 1}},
    {"grp3_7x7", "", 1, 3, 3, 2, {9, 10}, {7, 7}, one, one, {3, 2, 3, 2}},
    {"grp3_stem", "the first layer of a network", 2, 1, 3, 16, {15, 14}, {7, 7}, {2, 2}, one, {3, 3, 2, 3}},
    {"grp5_s3", "", 1, 3, 5, 4, {13, 16}, {5, 3}, {3, 2}, one, {2, 1, 2, 1}},
    {"grp7", "", 1, 3, 7, 2, {7, 8}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"grp2_1x1", "pointwise", 3, 6, 2, 3, {5, 9}, {1, 1}, one, one, {0, 0, 0, 0}},
    {"grp_few_k6x7", "grouped, one output a plane", 2, 6, 4, 5, {6, 7}, {6, 7}, one, one, {0, 0, 0, 0}},
    {"grp_few_k12", "", 1, 5, 8, 3, {12, 13}, {12, 12}, one, one, {0, 0, 0, 0}},
    {"grp2_1x1_k5", "1x1 input, large kernel", 2, 4, 2, 4, {1, 1}, {5, 5}, one, one, {2, 2, 2, 2}},
    // Channels that divide by 8: what moves 16 bytes at once.
    {"grp4_c40_row33", "5 octets, a row of several tiles", 2, 10, 4, 4, {9, 33}, {3, 3}, one, one, {1, 1, 1, 0}},
    {"grp4_row112",
     "a row of several tiles whose vectors are 16 bytes",
     1,
     2,
     4,
     4,
     {3, 112},
     {3, 3},
     one,
     one,
     {1, 1, 1, 1}},
    {"mult8_row112", "", 1, 8, 1, 8, {2, 112}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"grp8_c72_s2", "9 octets", 1, 9, 8, 8, {13, 19}, {3, 3}, {2, 2}, one, {1, 0, 1, 1}},
    {"grp2_c48_5x5", "", 1, 24, 2, 2, {11, 9}, {5, 5}, one, one, {2, 1, 2, 3}},
    {"grp4_c16_7x7", "", 1, 4, 4, 4, {13, 10}, {7, 7}, one, one, {3, 2, 3, 3}},
    {"grp2_c16_s3x2_d2", "", 1, 8, 2, 4, {15, 21}, {3, 4}, {3, 2}, {1, 2}, {1, 2, 1, 2}},
    {"grp4_c24_2x6", "even kernel", 1, 6, 4, 2, {7, 18}, {2, 6}, {1, 3}, one, {1, 2, 0, 3}},
    {"grp8_c16_5", "5 of 8 outputs", 1, 2, 8, 5, {8, 11}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"mult3_c16", "24 outputs an octet", 1, 16, 1, 3, {7, 12}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"mult16_c8", "", 1, 8, 1, 16, {6, 11}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"mult32_c8_9x9", "a stem's kind", 1, 8, 1, 32, {5, 9}, {9, 9}, {2, 2}, one, {4, 4, 4, 4}},
    {"dense_c2", "groups = 1, 2 channels", 2, 1, 2, 8, {9, 10}, {3, 3}, one, one, {1, 0, 1, 0}},
    {"dense_c3", "groups = 1, a stem", 1, 1, 3, 16, {15, 18}, {3, 3}, {2, 2}, one, {1, 0, 1, 0}},
    {"dense_c8", "groups = 1, 8 channels", 1, 1, 8, 5, {8, 9}, {3, 3}, one, one, {1, 1, 1, 1}},
    {"grp16_2",
     "more channels a group than the grouped schedules take",
     1,
     2,
     16,
     2,
     {5, 6},
     {3, 3},
     one,
     one,
     {1, 0, 1, 0}},
    // Halves of a plane.
    {"dw_halves_14", "an odd number of rows each", 3, 6, 1, 1, {14, 14}, {7, 7}, one, one, {3, 3, 3, 3}},
    {"dw_halves_20x24", "", 2, 5, 1, 1, {20, 24}, {5, 5}, one, one, {2, 2, 2, 2}},
    // Empty.
    {"empty", "pytorch#19599, detectron2#772", 0, 20, 1, 1, {10, 9}, {3, 3}, one, one, {1, 1, 1, 1}},
    // Beyond what is unrolled.
    {"dw_11x9_row_of_140",
     "rows of more tiles than are unrolled",
     1,
     2,
     1,
     1,
     {9, 140},
     {11, 9},
     one,
     one,
     {5, 4, 5, 4}},
    // At the end, where it does not move the variants that other rows come in.
    {"dw_line_31",
     "wav2vec's kind: one row, several tiles of it",
     3,
     40,
     1,
     1,
     {1, 150},
     {1, 31},
     one,
     one,
     {0, 15, 0, 15}},
};

// A wrong row is a mistake in this file: say which one and stop, or every test that walks the table would be empty.
ConvProblem problem_of(const Row& row) {
  ConvProblem problem;
  problem.n = row.n;
  problem.groups = row.groups;
  problem.c = row.groups * row.cpg;
  problem.k = row.groups * row.mult;
  problem.h = row.in.h;
  problem.w = row.in.w;
  problem.r = row.kernel.h;
  problem.s = row.kernel.w;
  problem.stride_h = row.stride.h;
  problem.stride_w = row.stride.w;
  problem.dil_h = row.dilation.h;
  problem.dil_w = row.dilation.w;
  problem.pad_top = row.pad.top;
  problem.pad_left = row.pad.left;
  Result<ConvProblem> sized = with_output_size(problem, row.pad.bottom, row.pad.right);
  if (sized.ok()) sized = validated(*sized);
  if (!sized.ok()) {
    std::fprintf(stderr, "test problem %s: %s\n", row.name, sized.error().message.c_str());
    std::abort();
  }
  return *sized;
}

}  // namespace

const std::vector<NamedProblem>& test_problems() {
  static const std::vector<NamedProblem> table = [] {
    std::vector<NamedProblem> result;
    for (const Row& row : rows) result.push_back({row.name, row.why, problem_of(row)});
    return result;
  }();
  return table;
}

}  // namespace sl::test
