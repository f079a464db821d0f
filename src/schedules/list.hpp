// The schedules, one constant each, defined in the file of its name.
#pragma once

#include "schedules/schedule.hpp"

namespace sl {

extern const Schedule grp_mma_nhwc, grp_mma_nchw, mult_mma, grp_mma_direct, dw_direct, dw_fold, dw_toeplitz,
    dw_band_rows, dw_plane, dw_plane_bulk, dw_band, dw_band_nhwc, dw_band_plane, dw_segments, dw_stage, grp_tf32,
    mult_tf32, grp_fma, grp_outer, grp_direct, dw_row8, dw_mult, dw_flat, grp_plane, grp_reduce;

}  // namespace sl
