// Heuristics as files that the tests share.
#pragma once

#include <string>

#include "routing/fixture.hpp"
#include "routing/heuristic.hpp"

namespace sl::test {

inline const char* const heuristic_evidence =
    R"("evidence": {"calls": 8, "left_out": "shapes", "groups": 5, "tested": 8, "picked": 1.05, "worst": 1.3,
     "default_order": 1.2, "default_worst": 2, "versions": "driver 1"})";

inline std::string build_of(const std::string& schedule) { return find_schedule(schedule)->digest().hex(); }

/// {"name": ..., "build": today's, "schedule": TREE, "config": TREE}.
inline std::string trees_json(const std::string& schedule, const std::string& tree, const std::string& config = "") {
  return R"({"name": ")" + schedule + R"(", "build": ")" + build_of(schedule) + R"(", "schedule": )" + tree +
         (config.empty() ? "" : R"(, "config": )" + config) + "}";
}
inline std::string leaf_json(double value) { return R"({"value": )" + std::to_string(value) + R"(, "cases": 4})"; }
inline std::string branch_json(const std::string& feature, double at_most, const std::string& yes,
                               const std::string& no) {
  return R"({"feature": ")" + feature + R"(", "at_most": )" + std::to_string(at_most) + R"(, "yes": )" + yes +
         R"(, "no": )" + no + "}";
}
inline std::string word_json(const std::string& feature, const std::string& is, const std::string& yes,
                             const std::string& no) {
  return R"({"feature": ")" + feature + R"(", "is": ")" + is + R"(", "yes": )" + yes + R"(, "no": )" + no + "}";
}

/// For a device of this name and capability.
inline std::string heuristic_json(const std::string& schedules, const std::string& device = "NVIDIA H200",
                                  int capability = 90) {
  return R"({"schema": 1, "device": {"name": ")" + device + R"(", "capability": )" + std::to_string(capability) +
         R"(}, "note": "a note", "predicts": "time", )" + heuristic_evidence + R"(, "schedules": [)" + schedules + "]}";
}

inline Heuristic heuristic(const std::string& json) {
  auto parsed = Heuristic::from_json(json, "test.json");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return std::move(parsed).value();
}

}  // namespace sl::test
