// The schedules, one constant each, defined in the file of its name.
#pragma once

#include "schedules/schedule.hpp"

namespace sl {

extern const Schedule dw_band, dw_band_nhwc, dw_flat, dw_row8, dw_stage, dw_mult, grp_plane, grp_reduce, grp_mma_nhwc,
    grp_mma_nchw;

}  // namespace sl
