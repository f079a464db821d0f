#include <gtest/gtest.h>

#include "routing/fixture.hpp"

namespace sl::test {
namespace {

TEST(Preflight, TheCallerSaysWhetherItIsOptional) {
  for (const ConvProblem& call : {dw3(), dw7(), grouped4()}) {
    const Preflight optional = preflight(call, device("h200"), Regular::yes);
    EXPECT_EQ(optional.verdict, Verdict::optional);
    EXPECT_EQ(optional.reason, "");
    EXPECT_FALSE(optional.set.candidates.empty());
    EXPECT_EQ(preflight(call, device("h200"), Regular::no).verdict, Verdict::required);
  }
}

TEST(Preflight, UnsupportedSaysWhyForEverySchedule) {
  const DeviceInfo rocm = device("mi300x");
  for (const Regular regular : {Regular::yes, Regular::no}) {
    const Preflight none = preflight(dw3(), rocm, regular);
    EXPECT_EQ(none.verdict, Verdict::unsupported);
    EXPECT_EQ(none.set.refusals.size(), all_schedules().size());
    EXPECT_NE(none.reason.find(dw3().to_string()), std::string::npos) << none.reason;
    EXPECT_NE(none.reason.find(rocm.name), std::string::npos);
    for (const Schedule* schedule : all_schedules())
      EXPECT_NE(none.reason.find(schedule->name), std::string::npos) << none.reason;
  }
}

TEST(Preflight, ACapabilityBelowThatOfEveryScheduleIsUnsupported) {
  DeviceInfo old = device("h200");
  old.capability = 30;
  const Preflight none = preflight(grouped4(), old, Regular::no);
  EXPECT_EQ(none.verdict, Verdict::unsupported);
  EXPECT_NE(none.reason.find("30"), std::string::npos) << none.reason;
}

TEST(Preflight, OnlyAndDisabled) {
  const std::vector<std::string> flat = {"dw_flat"};
  const Preflight only = preflight(dw3(), device("h200"), Regular::yes, flat);
  ASSERT_EQ(only.verdict, Verdict::optional);
  for (const Candidate& candidate : only.set.candidates) EXPECT_EQ(candidate.schedule->name, "dw_flat");
  const Preflight without = preflight(dw3(), device("h200"), Regular::yes, {}, flat);
  for (const Candidate& candidate : without.set.candidates) EXPECT_NE(candidate.schedule->name, "dw_flat");
  EXPECT_EQ(preflight(dw3(), device("h200"), Regular::no, flat, flat).verdict, Verdict::unsupported);
}

TEST(Preflight, EveryCudaDeviceThatIsDescribedCanRunTheBases) {
  for (const char* stem : {"a100", "h100", "h200", "rtx4090", "rtx5090", "b200"})
    for (const ConvProblem& call : {dw3(), grouped4()})
      EXPECT_EQ(preflight(call, device(stem), Regular::yes).verdict, Verdict::optional) << stem;
}

TEST(Verdict, Names) {
  EXPECT_EQ(name(Verdict::optional), "OPTIONAL");
  EXPECT_EQ(name(Verdict::required), "REQUIRED");
  EXPECT_EQ(name(Verdict::unsupported), "UNSUPPORTED");
}

}  // namespace
}  // namespace sl::test
