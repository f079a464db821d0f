// How far a correct fp32-accumulating kernel's output may be from the double reference. Internal to reference.
#pragma once

#include "reference/convolve.hpp"

namespace sl {

/// What one output is held to.
struct Verdict {
  bool right = false;
  double ratio = 0;  ///< |y - phi(a)| / allowed; infinity for a wrong NaN or infinity
  double want = 0;   ///< phi(a)
  double allowed = 0;
};

/// The bound of one problem; immutable, so any thread may use it.
///
/// With u = 2^-24, 2^-11, 2^-8 for f32, f16, bf16, T = taps x channels a group, a and S of pre_activation():
///   E       = A 2^-24 S;  A = T + 3 (fma), T + 3 s + 3 (mma)
///   allowed = u |phi(a)| + (1 + u) (L E + 4 2^-24 (|a| + |phi(a)|) where phi is transcendental) + eta
///   eta     = the output's smallest subnormal + T 2^-149
/// L is the largest slope of phi. An infinity is right where |phi(a)| + allowed exceeds the largest finite value. A NaN
/// is right only where the reference is NaN (an Inf or NaN in the window), and an infinite a asks for phi's limit;
/// where that is 0 (SiLU, GELU, hard-swish at -Inf) the usual formulas give NaN, which passes too.
///
/// In exact mode E is 0 and, except for transcendental activations and hard-swish, which get the 4 2^-24 term instead,
/// the bits must be those of phi(a) rounded once (or, for leaky ReLU, by way of fp32, since its product is inexact).
class Bound {
 public:
  Bound(const ConvProblem&, BoundOptions);
  Verdict judge(const PreActivation&, double y) const;

 private:
  bool same_bits(double y, double want) const;
  Verdict judge_special(double a, double y, double want) const;

  const ConvProblem& problem_;
  BoundOptions options_;
  double unit_ = 0, errors_ = 0, slope_ = 1, tiny_ = 0, largest_ = 0;
  bool inexact_activation_ = false;
};

}  // namespace sl
