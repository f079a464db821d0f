// Devices, problems and tables that the routing tests share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "routing/decision.hpp"
#include "routing/routing.hpp"

namespace sl::test {

inline DeviceInfo device(const char* stem) {
  auto found = described_device(stem);
  EXPECT_TRUE(found.ok()) << stem;
  return found.ok() ? std::move(found).value() : DeviceInfo{};
}

inline DeviceInfo host_device() {
  DeviceInfo info = device("h200");
  info.name = "host";
  info.backend = "host";
  return info;
}

inline ConvProblem problem(const std::string& text) {
  auto parsed = parse(text);
  EXPECT_TRUE(parsed.ok()) << text << ": " << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? std::move(parsed).value() : ConvProblem{};
}

inline ConvProblem dw3() { return problem("g144mb32ic144ih56oc144oh56kh3ph1 dt=f16 tag=nhwc"); }
inline ConvProblem dw7() { return problem("g96mb8ic96ih56oc96oh56kh7ph3 dt=f32 tag=nchw"); }
inline ConvProblem grouped4() { return problem("g32mb2ic128ih56oc128oh56kh3ph1 dt=f16 tag=nhwc"); }

/// A table for the H200 around these rules.
inline std::string h200_table(const std::string& rules, const std::string& more = "") {
  return R"({"schema": 1, "device": {"name": "NVIDIA H200", "capability": 90}, )" + more + R"("rules": [)" + rules +
         "]}";
}
inline const char* const evidence_json =
    R"("evidence": {"cases": 12, "min_speedup": 1.3, "median_speedup": 2.5, "baseline": "cudnn 9.19", "versions": "driver 580"})";
inline std::string rule_json(const std::string& name, const std::string& route, const std::string& when,
                             const std::string& more = "") {
  return R"({"name": ")" + name + R"(", "route": ")" + route + R"(", "when": {)" + when + "}" +
         (route == "take" ? std::string(", ") + evidence_json : "") + more + "}";
}

inline RoutingTable table(const std::string& json) {
  auto parsed = RoutingTable::from_json(json, "test.json");
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? std::move(parsed).value() : RoutingTable();
}

}  // namespace sl::test
