// A ConvProblem as a cuDNN operation graph.
#pragma once

#include <array>
#include <vector>

#include "core/conv_problem.hpp"
#include "tuner/cudnn/descriptor.hpp"

namespace sl::cudnn {

/// The problem without what follows the sum of products: no bias, no residual, no activation.
ConvProblem bare(const ConvProblem&);
bool has_epilogue(const ConvProblem&);

/// Numbers of the tensors in the graph.
enum Uid : std::int64_t { uid_x = 1, uid_w = 2, uid_y = 3, uid_bias = 4, uid_z = 5, uid_first_virtual = 100 };

/// The finalized graph and what it refers to.
struct Graph {
  std::vector<Descriptor> parts;
  Descriptor graph;
};

/// One graph: convolution, then the residual, the bias and the activation where the problem has them, sums in fp32
/// throughout. The weights are taken in the layout that suits x's (weight_layout()), whatever the problem says.
/// Code::unsupported: an activation that is no single cuDNN operation, or a graph that cuDNN refuses.
Result<Graph> build_graph(const Context&, const ConvProblem&);

/// ohwi for NHWC, oihw for NCHW: cuDNN has few engines for the mixed forms, and a runtime converts weights once.
WeightLayout weight_layout(const ConvProblem&);

/// Rows and columns added behind x: as many as in front where that gives the same output (most engines know symmetric
/// padding only), else exactly what the output needs, never less than 0.
std::array<std::int64_t, 2> post_padding(const ConvProblem&);

}  // namespace sl::cudnn
