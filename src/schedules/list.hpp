// The schedules, one constant each, defined in the file of its name.
#pragma once

#include "schedules/schedule.hpp"

namespace sl {

extern const Schedule grp_mma_nhwc, grp_mma_nchw, dw_band, dw_band_plane, dw_band_rows, dw_band_nhwc, dw_plane,
    dw_toeplitz, dw_large, dw_stage, dw_direct, dw_row8, dw_mult, dw_flat, grp_fma, grp_plane, grp_reduce, grp_direct,
    grp_mma_direct, mult_mma, dw_fold, grp_outer, dw_plane_bulk, dw_segments;

}  // namespace sl
