// The list of what passed the sanitizers: what it refuses to be read from, and what it keeps from a process.
#include "schedules/sanitized.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "schedules/list.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

DeviceInfo gpu() {
  DeviceInfo info;
  info.name = "NVIDIA H200";
  info.capability = 90;
  info.sm_count = 132;
  info.smem_optin = 232448;
  info.smem_per_sm = 233472;
  return info;
}

std::string list_json(const std::string& passed, const std::string& tools = R"("memcheck", "racecheck", "initcheck")") {
  return R"({"schema": 1, "runs": [{"gpu": "G", "driver": "1", "compiler": "c", "commit": "abc", "tools": [)" + tools +
         "], \"passed\": [" + passed + "]}]}";
}

std::string build_json(const Schedule& schedule) {
  return R"({"schedule": ")" + std::string(schedule.name) + R"(", "digest": ")" + schedule.digest().hex() + "\"}";
}

Sanitized all_but(const Schedule* missing) {
  std::string passed;
  for (const Schedule* schedule : all_schedules()) {
    if (schedule != missing) passed += (passed.empty() ? "" : ", ") + build_json(*schedule);
  }
  return Sanitized::from_json(list_json(passed), "list.json").value();
}

bool has(const std::vector<Candidate>& list, const Schedule& schedule) {
  return std::any_of(list.begin(), list.end(), [&](const Candidate& one) { return one.schedule == &schedule; });
}

TEST(Sanitized, TheShippedListCanBeRead) {
  const auto shipped = find_sanitized("");
  ASSERT_TRUE(shipped.ok()) << shipped.error().message;
  ASSERT_NE(*shipped, nullptr);
  EXPECT_EQ((*shipped)->origin(), "embedded:sanitized");
  EXPECT_FALSE((*shipped)->runs().empty());
}

TEST(Sanitized, AUsersListReplacesTheShippedOne) {
  const TempDir folder;
  const std::string path = (folder / "mine.json").string();
  write_file(path, list_json(build_json(dw_flat)));
  const auto mine = find_sanitized(path);
  ASSERT_TRUE(mine.ok()) << mine.error().message;
  EXPECT_TRUE((*mine)->has("dw_flat", dw_flat.digest()));
  EXPECT_FALSE((*mine)->has("dw_flat", grp_plane.digest()));
  EXPECT_FALSE((*mine)->has("grp_plane", dw_flat.digest()));
  EXPECT_EQ(find_sanitized("all").value(), nullptr);
  EXPECT_EQ(find_sanitized((folder / "none.json").string()).error().code, Code::environment);
}

TEST(Sanitized, WhatIsWrongIsNamed) {
  const struct {
    std::string json;
    std::vector<std::string> words;
  } rows[] = {
      {"", {"list.json:1:1", "not JSON"}},
      {"[]", {"$", "an object"}},
      {R"({"runs": []})", {"schema", "required"}},
      {R"({"schema": 2, "runs": []})", {"schema is 2"}},
      {R"({"schema": 1})", {"runs", "required"}},
      {R"({"schema": 1, "runs": [], "more": 1})", {"more"}},
      {R"({"schema": 1, "runs": [{}]})", {"$.runs[0]", "required"}},
      {list_json(build_json(dw_flat), R"("memcheck", "initcheck")"), {"$.runs[0]", "racecheck"}},
      {list_json(build_json(dw_flat) + "," + build_json(dw_flat)), {"dw_flat", "was there before"}},
      {list_json(R"({"schedule": "dw_flat", "digest": "12"})"), {"$.runs[0].passed[0].digest", "12"}},
      {list_json(R"({"schedule": "", "digest": ")" + dw_flat.digest().hex() + "\"}"), {"schedule is \"\""}},
      {list_json(R"({"schedule": "dw_flat"})"), {"digest", "required"}},
  };
  for (const auto& row : rows) {
    const auto list = Sanitized::from_json(row.json, "list.json");
    ASSERT_FALSE(list.ok()) << row.json;
    EXPECT_EQ(list.error().code, Code::invalid);
    for (const std::string& word : row.words)
      EXPECT_NE(list.error().message.find(word), std::string::npos) << list.error().message << "\nlacks " << word;
  }
}

TEST(Sanitized, WhatHasNotPassedIsNoCandidateOnAGpu) {
  const ConvProblem problem = parse("g64mb8ic64ih28oc64oh28kh3ph1 dt=f16 tag=nhwc").value();
  const CandidateSet all = candidates(problem, gpu(), {}, {});
  ASSERT_FALSE(all.candidates.empty());
  EXPECT_TRUE(all.with_untested.empty());
  const Schedule& missing = *all.candidates.front().schedule;
  const Sanitized list = all_but(&missing);
  const CandidateSet some = candidates(problem, gpu(), {}, {}, &list);
  EXPECT_FALSE(has(some.candidates, missing));
  EXPECT_NE(some.digest(), all.digest());
  EXPECT_EQ(some.digest_with_untested(), all.digest()) << "a child tries what there was before";
  const auto refusal = std::find_if(some.refusals.begin(), some.refusals.end(),
                                    [&](const ScheduleRefusal& one) { return one.schedule == missing.name; });
  ASSERT_NE(refusal, some.refusals.end());
  for (const std::string& word :
       {missing.digest().hex(), std::string("list.json"), std::string("sluice tune --isolate")})
    EXPECT_NE(refusal->reason.find(word), std::string::npos) << refusal->reason;
  // The others are what they would be without it: it takes no one's share of the candidates.
  const std::vector<std::string> disabled = {std::string(missing.name)};
  EXPECT_EQ(some.digest(), candidates(problem, gpu(), {}, disabled).digest());

  const Sanitized complete = all_but(nullptr);
  const CandidateSet same = candidates(problem, gpu(), {}, {}, &complete);
  EXPECT_EQ(same.digest(), all.digest());
  EXPECT_TRUE(same.with_untested.empty());
}

TEST(Sanitized, TheHostDeviceNeedsNoList) {
  DeviceInfo host = gpu();
  host.backend = "host";
  const Sanitized none = Sanitized::from_json(R"({"schema": 1, "runs": []})", "none").value();
  EXPECT_TRUE(may_try(dw_flat, host, &none));
  EXPECT_TRUE(may_try(dw_flat, gpu(), nullptr));
  EXPECT_FALSE(may_try(dw_flat, gpu(), &none));
}

}  // namespace
}  // namespace sl::test
