// The table of environment variables: every row is read, every malformed value is refused by name.
#include "core/environment.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace sl {
namespace {

using Variables = std::map<std::string, std::string>;

Result<Environment> read(const Variables& variables) {
  return read_environment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Environment, NothingSetGivesTheDefaults) {
  const auto e = read({});
  ASSERT_TRUE(e.ok());
  EXPECT_FALSE(e->disabled);
  EXPECT_EQ(e->cache_max_bytes, 1ULL << 30);
  EXPECT_EQ(e->tune_budget_ms, 1000);
  EXPECT_EQ(e->tune_scratch_bytes, 1ULL << 30);
  EXPECT_EQ(e->tune_threads, 0);
  EXPECT_TRUE(e->policy.empty());
  EXPECT_TRUE(e->cache_dir.empty());
}

TEST(Environment, EveryRowIsRead) {
  const Variables set = {
      {"SLUICE_DISABLE", "1"},
      {"SLUICE_FORCE_SCHEDULE", "dw_flat"},
      {"SLUICE_DISABLE_SCHEDULES", "a,b"},
      {"SLUICE_CACHE_DIR", "/c"},
      {"SLUICE_CACHE_MAX_MB", "3"},
      {"SLUICE_ROUTING_TABLE", "/r"},
      {"SLUICE_HEURISTIC", "/m"},
      {"SLUICE_SANITIZED", "/s"},
      {"SLUICE_DECISION_TABLE", "/d"},
      {"SLUICE_POLICY", "background"},
      {"SLUICE_RECORD", "/rec"},
      {"SLUICE_NVRTC", "/n"},
      {"SLUICE_LIBCUDA", "/l"},
      {"SLUICE_HOST_CXX", "/cxx"},
      {"SLUICE_HOST_SEED", "18446744073709551615"},
      {"SLUICE_TUNE_BUDGET_MS", "2.5"},
      {"SLUICE_TUNE_SCRATCH_MB", "7"},
      {"SLUICE_TUNE_THREADS", "4"},
      {"CUDA_HOME", "/cuda"},
      {"CUDA_PATH", "/other"},
      {"XDG_CACHE_HOME", "/x"},
      {"HOME", "/h"},
      {"PATH", "/bin:/usr/bin"},
  };
  EXPECT_EQ(set.size(), environment_variables().size());
  for (const auto& row : environment_variables()) EXPECT_EQ(set.count(row.name), 1U) << row.name;
  const auto e = read(set);
  ASSERT_TRUE(e.ok()) << e.error().message;
  EXPECT_TRUE(e->disabled);
  EXPECT_EQ(e->force_schedule, "dw_flat");
  EXPECT_EQ(e->disabled_schedules, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(e->cache_dir, "/c");
  EXPECT_EQ(e->cache_max_bytes, 3ULL << 20);
  EXPECT_EQ(e->routing_table, "/r");
  EXPECT_EQ(e->heuristic, "/m");
  EXPECT_EQ(e->sanitized, "/s");
  EXPECT_EQ(e->decision_table, "/d");
  EXPECT_EQ(e->policy, "background");
  EXPECT_EQ(e->nvrtc, "/n");
  EXPECT_EQ(e->libcuda, "/l");
  EXPECT_EQ(e->host_cxx, "/cxx");
  EXPECT_EQ(e->host_seed, ~0ULL);
  EXPECT_EQ(e->tune_budget_ms, 2.5);
  EXPECT_EQ(e->tune_scratch_bytes, 7ULL << 20);
  EXPECT_EQ(e->tune_threads, 4);
  EXPECT_EQ(e->cuda_home, "/cuda");
  EXPECT_EQ(e->xdg_cache_home, "/x");
  EXPECT_EQ(e->home, "/h");
  EXPECT_EQ(e->path, "/bin:/usr/bin");
}

TEST(Environment, CudaPathStandsInForCudaHome) {
  EXPECT_EQ(read({{"CUDA_PATH", "/other"}})->cuda_home, "/other");
  EXPECT_EQ(read({{"CUDA_PATH", "/other"}, {"CUDA_HOME", ""}})->cuda_home, "/other");
}

TEST(Environment, AnEmptyVariableCountsAsUnset) {
  Variables all;
  for (const auto& row : environment_variables()) all[row.name] = "";
  const auto e = read(all);
  ASSERT_TRUE(e.ok()) << e.error().message;
  EXPECT_EQ(e->cache_max_bytes, 1ULL << 30);
}

TEST(Environment, BoundsAreTaken) {
  EXPECT_EQ(read({{"SLUICE_CACHE_MAX_MB", "0"}})->cache_max_bytes, 0U);
  EXPECT_EQ(read({{"SLUICE_CACHE_MAX_MB", "17592186044415"}})->cache_max_bytes, 17592186044415ULL << 20);
  EXPECT_EQ(read({{"SLUICE_TUNE_BUDGET_MS", "0"}})->tune_budget_ms, 0);
  EXPECT_FALSE(read({{"SLUICE_DISABLE", "0"}})->disabled);
}

struct Case {
  const char* name;
  const char* value;
  const char* right;  // part of what the message says would be right
};

const Case malformed[] = {
    {"SLUICE_DISABLE", "yes", "0 or 1"},
    {"SLUICE_DISABLE_SCHEDULES", ",", "separated by"},
    {"SLUICE_DISABLE_SCHEDULES", "a,,b", "separated by"},
    {"SLUICE_DISABLE_SCHEDULES", "a,", "separated by"},
    {"SLUICE_CACHE_MAX_MB", "-1", "MiB from 0"},
    {"SLUICE_CACHE_MAX_MB", "1e3", "MiB from 0"},
    {"SLUICE_CACHE_MAX_MB", "12 ", "MiB from 0"},
    {"SLUICE_CACHE_MAX_MB", "17592186044416", "17592186044415"},        // 2^64 bytes
    {"SLUICE_CACHE_MAX_MB", "18446744073709551616", "17592186044415"},  // 2^64
    {"SLUICE_TUNE_SCRATCH_MB", "0x10", "MiB from 0"},
    {"SLUICE_POLICY", "fast", "first_use, immediate, background, pinned or off"},
    {"SLUICE_POLICY", "OFF", "off"},
    {"SLUICE_HOST_SEED", "-1", "from 0"},
    {"SLUICE_TUNE_BUDGET_MS", "-1", "milliseconds"},
    {"SLUICE_TUNE_BUDGET_MS", "nan", "milliseconds"},
    {"SLUICE_TUNE_BUDGET_MS", "inf", "milliseconds"},
    {"SLUICE_TUNE_BUDGET_MS", "1e300", "milliseconds"},
    {"SLUICE_TUNE_BUDGET_MS", "10ms", "milliseconds"},
    {"SLUICE_TUNE_THREADS", "many", "from 0 to 1024"},
    {"SLUICE_TUNE_THREADS", "-2", "from 0 to 1024"},
    {"SLUICE_TUNE_THREADS", "99999999999", "from 0 to 1024"},
};

TEST(Environment, MalformedValuesAreRefusedByName) {
  for (const Case& c : malformed) {
    SCOPED_TRACE(std::string(c.name) + "=" + c.value);
    const auto e = read({{c.name, c.value}});
    ASSERT_FALSE(e.ok());
    EXPECT_EQ(e.error().code, Code::invalid);
    EXPECT_NE(e.error().message.find(c.name), std::string::npos) << e.error().message;
    EXPECT_NE(e.error().message.find("`" + std::string(c.value) + "`"), std::string::npos) << e.error().message;
    EXPECT_NE(e.error().message.find(c.right), std::string::npos) << e.error().message;
  }
}

TEST(Environment, TheDocumentHasEveryRow) {
  std::ifstream file(SLUICE_SOURCE_DIR "/docs/environment.md");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_FALSE(text.empty());
  for (const auto& row : environment_variables()) {
    const std::string name = "| `" + std::string(row.name) + "` |";
    const std::string fallback = *row.fallback == '\0' ? " |" : " `" + std::string(row.fallback) + "` |";
    const std::string line = name + fallback + " " + row.meaning + " |";
    EXPECT_NE(text.find(line), std::string::npos) << "docs/environment.md lacks the line\n" << line;
  }
}

TEST(Environment, TheTableIsComplete) {
  std::set<std::string> names;
  for (const auto& row : environment_variables()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_NE(row.fallback, nullptr);
    EXPECT_GT(std::string(row.meaning).size(), 5U) << row.name;
  }
}

}  // namespace
}  // namespace sl
