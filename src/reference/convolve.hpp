// One output in double, before its activation, and the activations in double. Internal to reference.
#pragma once

#include "reference/reference.hpp"

namespace sl {

/// a = conv + bias + z, and S = sum |x||w| + |bias| + |z|, the scale of its rounding errors.
struct PreActivation {
  double value = 0, scale = 0;
};

/// An output's place; `index` counts outputs in the order n, k, p, q whatever the layout.
struct Place {
  std::int64_t n, k, p, q;
};
Place place_of(const ConvProblem&, std::int64_t index);

/// Requires tensors of the problem's sizes. Taps in the padding are skipped, so that no weight there matters.
PreActivation pre_activation(const ConvProblem&, const HostTensors&, const Place&);

/// phi(a). A NaN gives NaN.
double activate(const ConvProblem&, double a);

/// What is wrong with the sizes of the tensors; empty where nothing is.
std::string wrong_sizes(const ConvProblem&, const HostTensors&);

}  // namespace sl
