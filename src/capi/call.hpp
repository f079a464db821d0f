// sluice_conv2d_args -> ConvProblem and pointers: every field checked, nothing misread, nothing allocated while all is
// well.
#pragma once

#include <string>

#include "dispatch/dispatcher.hpp"
#include "routing/routing.hpp"
#include "sluice/sluice.h"

namespace sl::capi {

struct Call {
  ConvProblem problem;
  Tensors tensors;
  Regular regular = Regular::yes;
  /// The first tensor whose strides are not those of a packed tensor in the stated layout; null where all are packed.
  const sluice_tensor* strided = nullptr;
  const char* strided_name = nullptr;  ///< "x", "w", "bias", "z", "y"
};

enum class Data {
  needed,    ///< run: NULL data is an error
  optional,  ///< prepare, explain: NULL counts as aligned
};

/// ok, or invalid with `error` filled. Whether the problem itself is legal is validate()'s to say: the dispatcher asks
/// it before it decides anything, and a problem that it refuses is in no plan table. All sizes are in a range where
/// ConvProblem's derived quantities of one axis cannot overflow.
Code read_call(const sluice_conv2d_args&, Data, Call&, Error&);

/// "x.strides = {..} for dims {..}, but packed nhwc would be {..}". Requires call.strided.
std::string describe_strided(const Call&);
/// The answer to a strided call: the kept text is a constant, so that the answer allocates nothing.
const char* kept_for_strides(const Call&);

/// Bytes of each tensor, saturated at the largest value.
struct Extents {
  std::uint64_t x = 0, w = 0, bias = 0, z = 0, y = 0;
};
Extents extents(const ConvProblem&);

/// Null data, data that is not aligned to its element, y overlapping another tensor (z may be y itself). Nothing is
/// allocated while all is well; ok, or invalid with `error` filled.
Code check_pointers(const ConvProblem&, const Extents&, const Tensors&, Data, Error&);

/// The same as a yes or no, for a prepared plan, whose alignment class must hold too: without a division, a loop or a
/// branch that a right call takes.
bool pointers_fit(const ConvProblem&, const Extents&, const Tensors&);

}  // namespace sl::capi
