// Where an element lies under each layout.
#include "reference/reference.hpp"

namespace sl {

std::int64_t x_offset(const ConvProblem& v, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  return v.layout == Layout::nchw ? ((n * v.c + c) * v.h + h) * v.w + w : ((n * v.h + h) * v.w + w) * v.c + c;
}

std::int64_t w_offset(const ConvProblem& v, std::int64_t k, std::int64_t c, std::int64_t r, std::int64_t s) {
  const std::int64_t channels = v.channels_per_group();
  return v.weight_layout == WeightLayout::oihw ? ((k * channels + c) * v.r + r) * v.s + s
                                               : ((k * v.r + r) * v.s + s) * channels + c;
}

std::int64_t y_offset(const ConvProblem& v, std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) {
  return v.layout == Layout::nchw ? ((n * v.k + k) * v.p + p) * v.q + q : ((n * v.p + p) * v.q + q) * v.k + k;
}

}  // namespace sl
