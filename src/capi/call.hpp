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

/// Null data, data that is not aligned to its element, y overlapping another tensor (z may be y itself). Nothing is
/// allocated while all is well; ok, or invalid with `error` filled.
Code check_pointers(const ConvProblem&, const Extents&, const Tensors&, Data, Error&);

}  // namespace sl::capi
