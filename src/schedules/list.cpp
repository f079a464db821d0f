#include "schedules/list.hpp"

namespace sl {
namespace {

// The one list: in order of preference where nothing else decides.
constexpr const Schedule* schedules[] = {&grp_mma_nhwc, &grp_mma_nchw, &mult_mma,      &grp_mma_direct, &dw_direct,
                                         &dw_fold,      &dw_toeplitz,  &dw_band_rows,  &dw_plane,       &dw_plane_bulk,
                                         &dw_band,      &dw_band_nhwc, &dw_band_plane, &dw_segments,    &dw_stage,
                                         &grp_tf32,     &mult_tf32,    &grp_direct,    &grp_fma,        &grp_outer,
                                         &dw_row8,      &dw_mult,      &dw_flat,       &grp_plane,      &grp_reduce};

}  // namespace

std::span<const Schedule* const> all_schedules() { return schedules; }

const Schedule* find_schedule(std::string_view name) {
  for (const Schedule* schedule : schedules) {
    if (schedule->name == name) return schedule;
  }
  return nullptr;
}

const Schedule* base_schedule(const ConvProblem& problem, const DeviceInfo& device) {
  const Schedule* base = problem.depthwise() ? &dw_flat : &grp_plane;
  const bool runs = device_supports(base->min_capability, device) && !base->can_run(problem, device);
  return runs ? base : nullptr;
}

Digest Schedule::digest() const {
  const Digest code = kernel_source_digest(source);
  return KeyBuilder().add("schedule", name).add("source", code.hex()).finish();
}

}  // namespace sl
