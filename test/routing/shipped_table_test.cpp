// What the shipped table says of calls that Sluice is not made for.
#include <fstream>
#include <nlohmann/json.hpp>

#include "routing/fixture.hpp"

namespace sl::test {
namespace {

/// An item of a suite that gives numbers, as text: what a descriptor leaves out (p and q) follows.
std::string descriptor(const nlohmann::json& item, std::int64_t n) {
  const auto at = [&item](const char* key) { return item.at(key).dump(); };
  const auto both = [&item](const char* key, const std::string& h, const std::string& w) {
    return h + item.at(key).at(0).dump() + w + item.at(key).at(1).dump();
  };
  return "g" + at("groups") + "mb" + std::to_string(n) + "ic" + at("c") + "ih" + at("h") + "iw" + at("w") + "oc" +
         at("k") + "kh" + at("kh") + "kw" + at("kw") + both("stride", "sh", "sw") + both("pad", "ph", "pw");
}

// cuDNN's matrix kernels win where groups are wide, and nothing was measured there that could say otherwise.
TEST(ShippedTables, KeepEveryCallOfWideGroups) {
  std::ifstream file(SLUICE_SOURCE_DIR "/configs/suites/networks_wide_groups.json");
  const auto suite = nlohmann::json::parse(file);
  ASSERT_GE(suite.size(), 20U);
  const DeviceInfo h200 = device("h200");
  const auto choice = find_routing_table(h200, "", Log());
  ASSERT_TRUE(choice.ok()) << choice.error().message;
  ASSERT_TRUE(choice->table->decide(grouped4(), h200).take) << "4 channels a group: or the test would show nothing";
  for (const nlohmann::json& item : suite) {
    ASSERT_EQ(item.at("dil"), nlohmann::json({1, 1})) << item;
    for (const std::int64_t n : {1, 32, 128}) {
      for (const char* rest : {"dt=f16 tag=nchw", "dt=f16 tag=nhwc", "dt=f32 tag=nchw", "dt=f32 tag=nhwc"}) {
        const ConvProblem call = problem(descriptor(item, n) + " " + rest);
        EXPECT_FALSE(choice->table->decide(call, h200).take) << call.to_string();
      }
    }
  }
}

}  // namespace
}  // namespace sl::test
