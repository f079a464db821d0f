// NVRTC compiles the candidate space of the problem table for every architecture Sluice is checked against, and where a
// schedule promises no spill there is none. Needs no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "core/log.hpp"
#include "jit/backends.hpp"
#include "schedules/schedule.hpp"
#include "support/full_tests.hpp"
#include "support/problems.hpp"

namespace sl::test {
namespace {

constexpr const char* archs[] = {"sm_80", "sm_90", "sm_120"};
int capability_of(const std::string& arch) { return std::stoi(arch.substr(3)); }

struct Compile {
  KernelSpec spec;
  std::string arch;
  bool no_spill = false;
};

/// Every (spec, arch) of the table's candidates on an H200.
std::vector<Compile> whole_space() {
  std::vector<Compile> space;
  std::set<std::string> seen;
  DeviceInfo device;
  device.name = "NVIDIA H200";
  device.capability = 90;
  device.sm_count = 132;
  std::size_t turn = 0;
  for (const NamedProblem& row : test_problems()) {
    for (ConvProblem problem : spread_variants(row.problem, turn)) {
      if (++turn % 7 == 3) {  // so many images that offsets need 64 bits
        problem.n += (std::int64_t{1} << 31) / (problem.c * problem.h * problem.w);
      }
      for (const Candidate& candidate : candidates(problem, device, {}, {}).candidates) {
        const KernelSpec spec = candidate.schedule->kernel(problem, candidate.config);
        if (!seen.insert(spec.canonical()).second) continue;
        for (const char* arch : archs) {
          if (capability_of(arch) < candidate.schedule->min_capability) continue;
          space.push_back({spec, arch, candidate.schedule->promises_no_spill});
        }
      }
    }
  }
  return space;
}

/// Values count by class, or every kernel size would need its own pairs: the upper ends of the classes.
std::int64_t value_class(const std::string& name, std::int64_t value) {
  static const std::map<std::string, std::vector<std::int64_t>> classes = {
      {"R", {1, 5, 9}},
      {"S", {1, 5, 9}},
      {"MULT", {1, 4}},
      {"CPG", {1, 4}},
      {"STRIDE_H", {1, 2}},
      {"STRIDE_W", {1, 2}},
      {"DIL_H", {1}},
      {"DIL_W", {1}},
      {"LEAD", {0}},
      {"LANES", {1, 16}},
      {"TILES", {1}},
      {"X_ROW", {}},
      {"ROW_TILES", {}},
      {"COL_TILES", {}},
      {"X_ROWS", {}},
      {"H", {}},
      {"W", {7}},
      {"P", {}},
      {"Q", {7}},
      {"PAD_TOP", {0}},
      {"PAD_LEFT", {0}},
      {"TOP", {0}},
      {"LEFT", {0}},
      {"ROWS", {}},
      {"STRIPS", {1}},
      {"Y_ROW", {}},
      {"ROW_CHUNKS", {}},
      {"ROW_COPIES", {}},
      {"ROW_START", {0}},
      {"SLOTS", {1, 4}},
      {"HH", {1, 8}},
      {"UNIT_CHUNKS", {}},
      {"IMAGE_CHUNKS", {}},
      {"GROUP_CHUNKS", {}},
      {"STAGE_PITCH", {}},
      {"STAGE_HALF", {}},
      {"STAGE_PLANE", {}},
      {"PITCH", {}},
      {"PLANE", {}},
      {"GROUP", {}},
      {"WEIGHTS", {}},
      {"HIGH", {1}},
      {"WIDE", {1}},
      {"WIDTH", {}},
      {"FILTER_ROW", {}},
      {"FILTER_COPY", {}},
      {"FILTER_AT", {}},
      {"X_PITCH", {}},
      {"X_PLANE", {}},
      {"Y_PITCH", {}},
      {"Y_PLANE", {}},
      {"W_PITCH", {}},
      {"W_PLANE", {}},
      {"SEGMENTS", {}},
      {"CHUNK", {1}},
      {"IMAGES", {1}},
      {"CHANNELS", {1, 8}},
      {"LENGTH", {}},
      {"LOW", {}},
      {"XC", {}},
      {"QC", {}},
      {"C", {}},
      {"K", {}},
      {"SPLIT", {1}},
      {"ALONG", {}},
      {"LINES", {1}},
      {"IMAGE_BLOCKS", {}},
      {"BLOCK_TILES", {}},
      {"BLOCK_STRIPS", {}},
      {"APART", {1}},
      {"PHASES", {1}},
      {"STEP", {1}},
      {"PAD", {0}},
      {"ACT", {0, 2, 4, 6}}};  // none; relu, clip; silu, hard-swish; gelu
  const auto known = classes.find(name);
  if (known == classes.end()) return value;
  for (const std::int64_t end : known->second) {
    if (value <= end) return end;
  }
  return known->second.empty() ? 0 : known->second.back() + 1;
}

std::vector<int> pairs_of(const Compile& compile, std::map<std::string, int>& ids) {
  std::vector<std::string> values = {compile.arch};
  for (const auto& [name, value] : compile.spec.constants) {
    values.push_back(name + "=" + std::to_string(value_class(name, value)));
  }
  std::vector<int> pairs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i + 1; j < values.size(); ++j) {
      const std::string pair = compile.spec.schedule + ":" + values[i] + "," + values[j];
      pairs.push_back(ids.emplace(pair, static_cast<int>(ids.size())).first->second);
    }
  }
  return pairs;
}

/// A covering choice: the compile with most pairs not seen yet, again and again, up to `limit`; then without those
/// whose pairs later ones have brought too. Returns how many pairs of how many are covered.
std::pair<std::size_t, std::size_t> cover(std::vector<Compile>& space, std::size_t limit) {
  std::map<std::string, int> ids;
  std::vector<std::vector<int>> pairs;
  for (const Compile& compile : space) pairs.push_back(pairs_of(compile, ids));
  std::vector<int> seen(ids.size(), 0);  // by how many of those chosen
  const auto times = [&](int pair) -> int& { return seen[static_cast<std::size_t>(pair)]; };
  const auto fresh = [&](std::size_t i) {
    return std::count_if(pairs[i].begin(), pairs[i].end(), [&](int pair) { return times(pair) == 0; });
  };
  std::priority_queue<std::pair<std::ptrdiff_t, std::size_t>> queue;  // counts only fall, so a stale one is a bound
  for (std::size_t i = 0; i < space.size(); ++i) queue.emplace(fresh(i), i);
  std::vector<std::size_t> chosen;
  while (!queue.empty() && chosen.size() < limit) {
    const auto [count, i] = queue.top();
    queue.pop();
    const std::ptrdiff_t now = fresh(i);
    if (now == 0) continue;
    if (now < count) {
      queue.emplace(now, i);
      continue;
    }
    for (const int pair : pairs[i]) ++times(pair);
    chosen.push_back(i);
  }
  std::vector<Compile> needed;
  for (const std::size_t i : chosen) {
    if (std::any_of(pairs[i].begin(), pairs[i].end(), [&](int pair) { return times(pair) == 1; })) {
      needed.push_back(space[i]);
    } else {
      for (const int pair : pairs[i]) --times(pair);
    }
  }
  space = std::move(needed);
  return {static_cast<std::size_t>(std::count_if(seen.begin(), seen.end(), [](int n) { return n > 0; })), ids.size()};
}

TEST(NvrtcSpace, CompilesWithoutSpills) {
  const Result<Environment> environment = read_environment();
  ASSERT_TRUE(environment.ok()) << environment.error().message;
  const Log log;
  const std::unique_ptr<Compiler> compiler = make_nvrtc_compiler(*environment, log);
  if (!compiler->identity().available) GTEST_SKIP() << "no NVRTC: " << compiler->identity().why_not;

  std::vector<Compile> space = whole_space();
  if (!full_tests()) {
    const auto [covered, pairs] = cover(space, 60 * all_schedules().size());
    RecordProperty("pairs", static_cast<int>(pairs));
    ASSERT_EQ(covered, pairs) << "the covering choice needs more than " << space.size() << " compiles";
  }
  std::map<std::string, std::pair<int, int>> worst;  // schedule: registers, spilled bytes
  for (const char* arch : archs) {
    std::vector<KernelSpec> specs;
    std::vector<bool> no_spill;
    for (const Compile& compile : space) {
      if (compile.arch != arch) continue;
      specs.push_back(compile.spec);
      no_spill.push_back(compile.no_spill);
    }
    const auto binaries = compiler->compile(specs, arch, 0);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      ASSERT_TRUE(binaries[i].ok()) << binaries[i].error().message;
      const Binary& binary = *binaries[i];
      EXPECT_GT(binary.registers, 0) << specs[i].canonical();
      if (no_spill[i]) {
        EXPECT_EQ(binary.spill_bytes, 0) << arch << " " << specs[i].canonical() << ": " << binary.registers
                                         << " registers";
      }
      auto& [registers, spill] = worst[specs[i].schedule];
      registers = std::max(registers, binary.registers);
      spill = std::max(spill, binary.spill_bytes);
    }
  }
  for (const auto& [schedule, use] : worst) RecordProperty(schedule + "_registers", use.first);
  RecordProperty("compiles", static_cast<int>(space.size()));
  EXPECT_EQ(worst.size(), all_schedules().size()) << "the table leaves a schedule without a candidate";
}

}  // namespace
}  // namespace sl::test
