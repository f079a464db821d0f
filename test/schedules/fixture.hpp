// What the pure tests of schedules share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "schedules/schedule.hpp"

namespace sl::test {

inline DeviceInfo device(const char* name, const char* backend, int capability, int sm_count) {
  DeviceInfo info;
  info.name = name;
  info.backend = backend;
  info.capability = capability;
  info.sm_count = sm_count;
  return info;
}

inline const DeviceInfo h200 = device("NVIDIA H200", "cuda", 90, 132);

inline ConvProblem parsed(const std::string& text) {
  const Result<ConvProblem> problem = parse(text);
  EXPECT_TRUE(problem.ok()) << text << ": " << (problem.ok() ? "" : problem.error().message);
  return problem.ok() ? *problem : ConvProblem{};
}

}  // namespace sl::test
