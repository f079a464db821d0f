// User table over shipped table over the conservative default.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/embedded.hpp"
#include "routing/fixture.hpp"
#include "support/temp_dir.hpp"

namespace sl::test {
namespace {

const Log silent;

std::string table_for(const std::string& name, int capability, const std::string& rule = "mine") {
  return R"({"schema": 1, "device": {"name": ")" + name + R"(", "capability": )" + std::to_string(capability) +
         R"(}, "rules": [)" + rule_json(rule, "take", "") + "]}";
}
const std::string any_table =
    R"({"schema": 1, "device": "any", "rules": [{"name": "any", "route": "take", "when": {}}]})";

bool mentions(const std::vector<std::string>& lines, const std::string& word) {
  for (const std::string& line : lines)
    if (line.find(word) != std::string::npos) return true;
  return false;
}

TEST(ShippedTables, EveryDescribedDeviceHasOne) {
  for (const std::string& stem : described_devices()) {
    const auto choice = find_routing_table(device(stem.c_str()), "", silent);
    ASSERT_TRUE(choice.ok()) << choice.error().message;
    EXPECT_TRUE(choice->table->matches(device(stem.c_str())));
    EXPECT_FALSE(choice->searched.empty());
    EXPECT_EQ(choice->table->origin().find("embedded:"), 0U);
  }
}

TEST(ShippedTables, AllAreReadAndEveryTakeOfADeviceHasEvidence) {
  std::size_t defaults = 0;
  for (const EmbeddedFile& file : embedded_routing_json()) {
    const auto shipped = RoutingTable::from_json(file.content, std::string(file.path));
    ASSERT_TRUE(shipped.ok()) << shipped.error().message;
    defaults += shipped->for_any_device();
    for (const Rule& rule : shipped->rules())
      EXPECT_TRUE(!rule.take || rule.evidence || shipped->for_any_device()) << file.path << ": " << rule.name;
  }
  EXPECT_EQ(defaults, 1U);
}

TEST(ShippedTables, AnUnknownDeviceGetsTheConservativeDefaultAndIsTold) {
  DeviceInfo unknown = device("h200");
  unknown.name = "NVIDIA Z900";
  std::string said;
  const Log log([&](LogLevel, std::string_view text) { said += text; });
  const auto choice = find_routing_table(unknown, "", log);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->table->origin(), "embedded:default");
  EXPECT_TRUE(mentions(choice->searched, "embedded:default: the conservative default"));
  EXPECT_NE(said.find("NVIDIA Z900"), std::string::npos);
  EXPECT_NE(said.find("SLUICE_ROUTING_TABLE"), std::string::npos);
}

TEST(ShippedTables, TheHostDeviceTakesEverything) {
  const auto choice = find_routing_table(host_device(), "", silent);
  ASSERT_TRUE(choice.ok());
  for (const ConvProblem& call : {dw3(), dw7(), grouped4()})
    EXPECT_TRUE(choice->table->decide(call, host_device()).take);
  EXPECT_TRUE(mentions(choice->searched, "host"));
}

TEST(UserTable, FileWins) {
  const TempDir dir;
  write_file(dir / "mine.json", table_for("NVIDIA H200", 90));
  const auto choice = find_routing_table(device("h200"), (dir / "mine.json").string(), silent);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(choice->table->origin(), (dir / "mine.json").string());
  EXPECT_EQ(choice->table->decide(dw3(), device("h200")).rule, "mine");
  EXPECT_EQ(choice->searched.size(), 1U) << "the shipped tables are not merged in";
}

TEST(UserTable, FileForAnotherDeviceNamesBoth) {
  const TempDir dir;
  write_file(dir / "a100.json", table_for("NVIDIA A100-SXM4-80GB", 80));
  const auto choice = find_routing_table(device("h200"), (dir / "a100.json").string(), silent);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, Code::invalid);
  for (const char* word : {"a100.json", "NVIDIA A100-SXM4-80GB (capability 80)", "NVIDIA H200 (capability 90)"})
    EXPECT_NE(choice.error().message.find(word), std::string::npos) << choice.error().message;
}

// To try a table without its GPU, or to keep what a test wants kept.
TEST(UserTable, TheHostDeviceMayHaveOneOfItsOwn) {
  const TempDir dir;
  DeviceInfo host = host_device();
  write_file(dir / "host.json", table_for("host", host.capability));
  const auto choice = find_routing_table(host, (dir / "host.json").string(), silent);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(choice->table->decide(dw3(), host).rule, "mine");
  host.capability = 80;
  EXPECT_FALSE(choice->table->matches(host)) << "it emulates another capability";
}

TEST(UserTable, BrokenFileIsAnError) {
  const TempDir dir;
  write_file(dir / "bad.json", h200_table(rule_json("r", "keep", R"("n": {"min": NaN})")));
  const auto choice = find_routing_table(device("h200"), (dir / "bad.json").string(), silent);
  ASSERT_FALSE(choice.ok());
  EXPECT_NE(choice.error().message.find("bad.json:1:"), std::string::npos) << choice.error().message;
  EXPECT_NE(choice.error().message.find("NaN"), std::string::npos);
}

TEST(UserTable, AbsentPathIsAnError) {
  const auto choice = find_routing_table(device("h200"), "/nowhere/table.json", silent);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.error().code, Code::environment);
  EXPECT_NE(choice.error().message.find("/nowhere/table.json"), std::string::npos);
}

TEST(UserTable, SomethingElseThanAFileIsAnError) {
  const auto choice = find_routing_table(device("h200"), "/dev/null", silent);
  ASSERT_FALSE(choice.ok());
  EXPECT_NE(choice.error().message.find("regular file"), std::string::npos) << choice.error().message;
}

TEST(UserFolder, TheMatchingFileWinsAndTheOthersAreNoted) {
  const TempDir dir;
  write_file(dir / "a.json", table_for("NVIDIA A100-SXM4-80GB", 80));
  write_file(dir / "b.json", table_for("NVIDIA H200", 90, "the right one"));
  write_file(dir / "c.json", any_table);
  write_file(dir / "notes.txt", "not a table");
  const auto choice = find_routing_table(device("h200"), dir.path().string(), silent);
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  EXPECT_EQ(choice->table->decide(dw3(), device("h200")).rule, "the right one");
  EXPECT_EQ(choice->searched.size(), 3U);
  EXPECT_TRUE(mentions(choice->searched, "a.json: for NVIDIA A100"));
  EXPECT_TRUE(mentions(choice->searched, "b.json: matches"));
  const auto other = find_routing_table(device("h100"), dir.path().string(), silent);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->table->decide(dw3(), device("h100")).rule, "any");
}

TEST(UserFolder, WithoutAMatchTheShippedTablesFollow) {
  const TempDir dir;
  const auto empty = find_routing_table(device("a100"), dir.path().string(), silent);
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(mentions(empty->searched, "no *.json"));
  write_file(dir / "h200.json", table_for("NVIDIA H200", 90));
  const auto choice = find_routing_table(device("a100"), dir.path().string(), silent);
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->table->origin().find("embedded:"), 0U);
  EXPECT_TRUE(mentions(choice->searched, "h200.json: for NVIDIA H200"));
  EXPECT_EQ(choice->searched.front().find(dir.path().string()), 0U) << "in the order they were looked at";
}

TEST(UserFolder, ABrokenFileIsAnErrorEvenWhereAnotherMatches) {
  const TempDir dir;
  write_file(dir / "a.json", table_for("NVIDIA H200", 90));
  write_file(dir / "z.json", "{");
  const auto choice = find_routing_table(device("h200"), dir.path().string(), silent);
  ASSERT_FALSE(choice.ok());
  EXPECT_NE(choice.error().message.find("z.json"), std::string::npos);
}

TEST(UserFolder, TwoTablesForOneDeviceAreAnError) {
  const TempDir dir;
  write_file(dir / "a.json", table_for("NVIDIA H200", 90));
  write_file(dir / "b.json", table_for("NVIDIA H200", 90));
  const auto choice = find_routing_table(device("h200"), dir.path().string(), silent);
  ASSERT_FALSE(choice.ok());
  for (const char* word : {"a.json", "b.json", "NVIDIA H200"})
    EXPECT_NE(choice.error().message.find(word), std::string::npos) << choice.error().message;
}

TEST(ConservativeDefault, Table) {
  DeviceInfo unknown = device("h200");
  unknown.name = "NVIDIA Z900";
  const auto choice = find_routing_table(unknown, "", silent);
  ASSERT_TRUE(choice.ok());
  struct Row {
    const char* problem;
    const char* rule;  ///< empty = kept
  };
  const Row rows[] = {
      {"g96mb8ic96ih56oc96oh56kh7ph3 dt=f32 tag=nchw", "depthwise-7x7-nchw"},
      {"g96mb8ic96ih56oc96oh56kh7ph3 dt=bf16 tag=nchw", "depthwise-7x7-nchw"},
      {"g96mb8ic96ih56oc96oh56kh7ph3 dt=f16 tag=nchw", ""},
      {"g96mb8ic96ih56oc96oh56kh7ph3 dt=f32 tag=nhwc", ""},
      {"g96mb8ic96ih56oc96oh56kh9ph4 dt=f16 tag=nhwc", "depthwise-9x9"},
      {"g96mb8ic96ih56oc96oh56kh9ph4 dt=f32 tag=nchw", "depthwise-9x9"},
      {"g96mb8ic96ih56oc96oh56kh11ph5 dt=f32 tag=nchw", ""},
      {"g96mb8ic96ih56oc96oh56kh5ph2 dt=f32 tag=nchw", ""},
      {"g96mb8ic96ih56oc96oh56kh7ph6dh1 dt=f16 tag=nchw", "depthwise-7x7-nchw-dilated"},
      {"g96mb8ic96ih56oc96oh56kh3ph2dh1 dt=f16 tag=nchw", ""},
      {"g8mb1ic8ih14oc8oh14kh7ph3 dt=f32 tag=nchw", ""},
      {"g96mb8ic96ih56oc192oh56kh7ph3 dt=f32 tag=nchw", ""},
      {"g48mb8ic96ih56oc96oh56kh7ph3 dt=f32 tag=nchw", ""},
      {"g144mb32ic144ih56oc144oh56kh3ph1 dt=f16 tag=nhwc", ""},
  };
  for (const Row& row : rows) {
    const Route route = choice->table->decide(problem(row.problem), unknown);
    EXPECT_EQ(route.take, *row.rule != '\0') << row.problem;
    EXPECT_EQ(route.rule, *row.rule != '\0' ? row.rule : "default: keep") << row.problem;
  }
}

}  // namespace
}  // namespace sl::test
