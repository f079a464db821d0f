#include "device/device_info.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace sl {
namespace {

DeviceInfo described(const char* stem) {
  const auto device = described_device(stem);
  EXPECT_TRUE(device.ok()) << (device.ok() ? "" : device.error().message);
  return device.ok() ? device.value() : DeviceInfo{};
}

TEST(DescribedDevices, HaveTheFiguresThatSchedulesLookAt) {
  struct Row {
    const char *stem, *name, *backend;
    int capability, sm_count;
    std::int64_t l2_mib;
    int smem_optin_kib;
  };
  const Row rows[] = {
      {"a100", "NVIDIA A100-SXM4-80GB", "cuda", 80, 108, 40, 163},
      {"b200", "NVIDIA B200", "cuda", 100, 148, 126, 227},
      {"h100", "NVIDIA H100 80GB HBM3", "cuda", 90, 132, 50, 227},
      {"h200", "NVIDIA H200", "cuda", 90, 132, 60, 227},
      {"mi300x", "AMD Instinct MI300X", "rocm", 0, 304, 32, 64},
      {"rtx4090", "NVIDIA GeForce RTX 4090", "cuda", 89, 128, 72, 99},
      {"rtx5090", "NVIDIA GeForce RTX 5090", "cuda", 120, 170, 96, 99},
  };
  std::vector<std::string> stems;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.stem);
    stems.emplace_back(row.stem);
    const DeviceInfo device = described(row.stem);
    EXPECT_EQ(device.name, row.name);
    EXPECT_EQ(device.backend, row.backend);
    EXPECT_EQ(device.capability, row.capability);
    EXPECT_EQ(device.sm_count, row.sm_count);
    EXPECT_EQ(device.l2_bytes, row.l2_mib << 20);
    EXPECT_EQ(device.smem_optin, row.smem_optin_kib << 10);
    EXPECT_GE(device.smem_per_sm, device.smem_optin);
    EXPECT_GT(device.memory_bytes, std::int64_t{20} << 30);
    EXPECT_EQ(device.mig, "");
  }
  EXPECT_EQ(described_devices(), stems);
}

TEST(DescribedDevices, UnknownOneNamesTheKnown) {
  const auto device = described_device("h300");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().code, Code::not_found);
  for (const char* word : {"h300", "h200", "mi300x"})
    EXPECT_NE(device.error().message.find(word), std::string::npos) << device.error().message;
}

TEST(DeviceInfoJson, RoundTrips) {
  for (const std::string& stem : described_devices()) {
    DeviceInfo device = described(stem.c_str());
    device.mig = "3g.71gb";
    const auto back = parse_device_info(to_json(device), "test");
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(to_json(back.value()), to_json(device));
    EXPECT_EQ(back->decision_digest(), device.decision_digest());
    EXPECT_EQ(back->registers_per_sm, device.registers_per_sm);
    EXPECT_EQ(back->max_threads_per_sm, device.max_threads_per_sm);
    EXPECT_EQ(back->memory_bytes, device.memory_bytes);
  }
}

TEST(DeviceInfoJson, ErrorsNameFilePlaceAndValue) {
  const std::string good = to_json(described("h200"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  struct Row {
    std::string text;
    std::vector<std::string> words;
  };
  const Row rows[] = {
      {"", {"not JSON"}},
      {"[]", {"$", "an object"}},
      {"{}", {"\"name\"", "required"}},
      {changed("\"NVIDIA H200\"", "7"), {"$.name", "7", "a string"}},
      {changed("\"NVIDIA H200\"", "\"\""), {"$.name", "empty"}},
      {changed("\"cuda\"", "\"metal\""), {"$.backend", "metal", "cuda, host or rocm"}},
      {changed("\"cuda\"", "\"rocm\""), {"$.capability", "90", "0 would be right"}},
      {changed("\"capability\": 90", "\"capability\": 9"), {"$.capability", "9", "10 * major + minor"}},
      {changed("\"capability\": 90", "\"capability\": 9.0"), {"$.capability", "9.0", "an integer"}},
      {changed("\"sm_count\": 132", "\"sm_count\": 0"), {"$.sm_count", "0", "1 to"}},
      {changed("\"sm_count\": 132", "\"sm_count\": 18446744073709551615"), {"$.sm_count", "1 to"}},
      {changed("\"sm_count\": 132", "\"sm_count\": NaN"), {"test:5:", "not JSON", "NaN"}},
      {changed("\"sm_count\"", "\"sms\""), {"sm_count", "required"}},
      {changed("\"mig\"", "\"migg\""), {"unknown key \"migg\""}},
      {changed("\"mig\": \"\"", "\"name\": \"twice\""), {"name", "occurs twice"}},
  };
  for (const Row& row : rows) {
    const auto device = parse_device_info(row.text, "test");
    ASSERT_FALSE(device.ok()) << row.text;
    EXPECT_EQ(device.error().code, Code::invalid);
    EXPECT_EQ(device.error().message.find("test"), 0U) << device.error().message;
    for (const std::string& word : row.words)
      EXPECT_NE(device.error().message.find(word), std::string::npos) << device.error().message << " lacks " << word;
  }
}

TEST(DecisionDigest, ChangesWithWhatChangesTheFastestKernelOnly) {
  const DeviceInfo base = described("h200");
  const Digest digest = base.decision_digest();
  const auto with = [&](auto change) {
    DeviceInfo device = base;
    change(device);
    return device.decision_digest();
  };
  EXPECT_NE(with([](DeviceInfo& d) { d.name = "NVIDIA H20"; }), digest);
  EXPECT_NE(with([](DeviceInfo& d) { d.backend = "host"; }), digest);
  EXPECT_NE(with([](DeviceInfo& d) { d.capability = 100; }), digest);
  EXPECT_NE(with([](DeviceInfo& d) { d.sm_count = 66; }), digest);
  EXPECT_NE(with([](DeviceInfo& d) { d.l2_bytes /= 2; }), digest);
  EXPECT_NE(with([](DeviceInfo& d) { d.smem_optin -= 1024; }), digest);
  EXPECT_NE(with([](DeviceInfo& d) { d.mig = "1g.18gb"; }), digest);
  EXPECT_EQ(with([](DeviceInfo& d) { d.memory_bytes /= 2; }), digest);
}

TEST(DeviceSupports, Table) {
  struct Row {
    const char* backend;
    int capability, needs;
    bool arch_specific, want;
  };
  const Row rows[] = {
      {"cuda", 90, 0, false, true},    {"cuda", 90, 80, false, true},  {"cuda", 90, 90, false, true},
      {"cuda", 89, 90, false, false},  {"cuda", 120, 90, false, true}, {"cuda", 120, 100, false, true},
      {"cuda", 90, 90, true, true},    {"cuda", 100, 90, true, false}, {"cuda", 103, 100, true, false},
      {"cuda", 80, 90, true, false},   {"rocm", 0, 0, false, false},   {"rocm", 90, 80, false, false},
      {"rocm", 90, 90, true, false},   {"host", 90, 80, false, true},  {"host", 70, 80, false, false},
      {"metal", 90, 80, false, false},
  };
  for (const Row& row : rows) {
    DeviceInfo device;
    device.backend = row.backend;
    device.capability = row.capability;
    EXPECT_EQ(device_supports(row.needs, device, row.arch_specific), row.want)
        << row.backend << ' ' << row.capability << " needs " << row.needs << (row.arch_specific ? "a" : "");
  }
}

}  // namespace
}  // namespace sl
