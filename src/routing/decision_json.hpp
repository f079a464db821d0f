// Decision records inside JSON documents. For .cpp files only.
#pragma once

#include "core/json_reader.hpp"
#include "routing/decision.hpp"

namespace sl {

nlohmann::ordered_json decision_json(const Decision&);
/// Tolerant to unknown keys (a newer library may have written it), strict on types and words.
Result<Decision> decision_from(const JsonView&);

}  // namespace sl
