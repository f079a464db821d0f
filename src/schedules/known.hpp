// Whether the schedules that a user names exist.
#pragma once

#include "core/environment.hpp"
#include "core/result.hpp"

namespace sl {

/// Code::invalid, with the variable's name, where SLUICE_FORCE_SCHEDULE or SLUICE_DISABLE_SCHEDULES names a schedule
/// that does not exist.
Status known_schedules(const Environment&);

}  // namespace sl
